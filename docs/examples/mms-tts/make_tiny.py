"""Writes `tiny/` beside this file: a VITS of a few thousand random weights and a tokenizer of letters. No network."""

import json
from pathlib import Path

import torch
from transformers import VitsConfig, VitsModel, VitsTokenizer

FOLDER = Path(__file__).parent / "tiny"
LETTERS = " abcdefghijklmnopqrstuvwxyz'"

torch.manual_seed(0)
FOLDER.mkdir(exist_ok=True)
vocabulary = {letter: number for number, letter in enumerate("_" + LETTERS)}
(FOLDER / "vocab.json").write_text(json.dumps(vocabulary))
tokenizer = VitsTokenizer(str(FOLDER / "vocab.json"), pad_token="_", unk_token="_", phonemize=False)
config = VitsConfig(
    vocab_size=len(vocabulary),
    hidden_size=16,
    num_hidden_layers=1,
    ffn_dim=32,
    flow_size=16,
    spectrogram_bins=17,
    prior_encoder_num_flows=1,
    prior_encoder_num_wavenet_layers=1,
    posterior_encoder_num_wavenet_layers=1,
    upsample_initial_channel=32,
    duration_predictor_filter_channels=16,
    depth_separable_num_layers=1,
    duration_predictor_num_flows=1,
)
VitsModel(config).save_pretrained(FOLDER)
tokenizer.save_pretrained(FOLDER)
print(FOLDER)
