"""Audio-Omni: its diffusion, conditioners and interface over a Qwen2.5-Omni thinker of two layers."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.actors.serving import reason
from tests.released.asked import listens, rendered, renders, same, silence
from tests.released.cases import Say
from tests.systems.clips import edit, render, stored
from torus_ray.audio import Clip, decode, encode
from torus_ray.engine.hosting import HeadServer

SETTINGS = {"steps": 2, "max_new_tokens": 8}
BESIDE: tuple[str, ...] = ()
MADE_SMALL = (
    "Audio-Omni.json: transformer of width 64, two layers, two heads; autoencoder of 8 channels; the rest as released",
    "Qwen2.5-Omni: two layers a side; its text width stays 2,048, which the released projection names",
)
TOKENS = {
    "image_token": "<|IMAGE|>",
    "audio_token": "<|AUDIO|>",
    "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for c in m.content %}"
    "{% if c.type == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>{% else %}{{ c.text }}{% endif %}{% endfor %}"
    "<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
ONE_LAYER = {"num_hidden_layers": 2, "num_attention_heads": 16, "num_key_value_heads": 1, "intermediate_size": 16}


def weights(folder: Path, source: Path) -> Mapping[str, Path]:
    import torch
    from audio_omni.models.factory import create_model_from_config

    torch.manual_seed(0)
    model, thinker = folder / "model", folder / "qwen_omni"
    model.mkdir(parents=True)
    _qwen_omni(thinker)
    config = json.loads((source / "model" / "Audio-Omni.json").read_text())
    for part in ("encoder", "decoder"):
        config["model"]["pretransform"]["config"][part]["config"].update(channels=8, c_mults=[1, 1, 1, 1, 1])
    config["model"]["diffusion"]["config"].update(embed_dim=64, depth=2, num_heads=2)
    (model / "Audio-Omni.json").write_text(json.dumps(config))
    os.environ["QWEN_OMNI_MODEL_PATH"] = str(thinker)
    with contextlib.chdir(source):  # where the configuration's vocabulary lies
        net = create_model_from_config(config)
    del os.environ["QWEN_OMNI_MODEL_PATH"]
    # Projections start as nothing, so that an untrained one makes nothing of what it is told.
    for name, value in net.named_parameters():
        if ".thinker." not in name and not value.any():
            torch.nn.init.normal_(value, std=0.1)
    torch.save({"state_dict": net.state_dict()}, model / "model.ckpt")
    return {"model": model, "qwen_omni": thinker}


def _qwen_omni(folder: Path) -> None:
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*letters, *SPECIAL, *TOKENS.values()]
    words = Tokenizer(models.BPE(vocab={piece: at for at, piece in enumerate(pieces)}, merges=[]))
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token=SPECIAL[0], eos_token=SPECIAL[2], extra_special_tokens=TOKENS
    )
    fast.add_special_tokens({"additional_special_tokens": [*SPECIAL, *TOKENS.values()]})
    ids = {name: fast.convert_tokens_to_ids(token) for name, token in TOKENS.items()}
    shared = {
        "audio_token_index": ids["audio_token"],
        "image_token_index": ids["image_token"],
        "video_token_index": ids["video_token"],
        "audio_start_token_id": ids["audio_bos_token"],
        "audio_end_token_id": ids["audio_eos_token"],
        "vision_start_token_id": ids["vision_bos_token"],
        "vision_end_token_id": ids["vision_eos_token"],
    }
    rope = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [16, 24, 24]}
    ears = {"d_model": 16, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32, "output_dim": 2048}
    eyes = {"depth": 1, "hidden_size": 16, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 2048}
    voice = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = transformers.Qwen2_5OmniConfig(
        thinker_config={
            **shared,
            "audio_config": {**ears, "num_mel_bins": 128},
            "vision_config": eyes,
            "text_config": {"hidden_size": 2048, "vocab_size": len(fast), "rope_parameters": rope, **ONE_LAYER},
        },
        talker_config={**shared, **voice, "intermediate_size": 16, "embedding_size": 2048, "head_dim": 16},
        enable_audio_output=False,
    )
    transformers.Qwen2_5OmniForConditionalGeneration(config).save_pretrained(folder)
    torch.save({}, folder / "spk_dict.pt")  # the voices, which Audio-Omni never uses
    transformers.Qwen2_5OmniProcessor(
        image_processor=transformers.Qwen2VLImageProcessor(),
        video_processor=transformers.Qwen2VLVideoProcessor(),
        feature_extractor=transformers.WhisperFeatureExtractor(feature_size=128),
        tokenizer=fast,
        chat_template=TEMPLATE,
    ).save_pretrained(folder)


@contextlib.contextmanager
def patched(adapter: type) -> Iterator[None]:
    yield


def prove(server: HeadServer, say: Say, folder: Path) -> None:
    made = renders(server, say, lambda prompt, seed: render(prompt, seed=seed), 44_100, 2)
    assert made.frames == 236 * 2048
    assert np.abs(made.wave).max() > 0.99
    api: Any = server.model._api
    released = api.generate("T2A", "a dog barks twice", steps=SETTINGS["steps"], seed=7).numpy() / np.float32(32_768)
    assert same(made, decode(encode(Clip(released, 44_100)).data)), "the package's own `generate` makes another clip"
    say("it is, to the last bit, what the package's own `generate` makes of the same weights")
    for audio_type in ("music", "speech"):
        clip, _ = rendered(server, render("slow piano", audio_type))
        say(f"{audio_type}: {clip.frames} samples")
    source = stored(10.96)
    made = renders(server, say, lambda prompt, seed: edit(prompt, source, seed=seed), 44_100, 2)
    for seconds in (0.5, 10.0):
        clip, notes = rendered(server, edit("Add rain.", stored(seconds)))
        say(f"an edit of {seconds:g} s: {clip.duration_s:.2f} s, notes {notes!r}")
    clip, notes = rendered(server, edit("Add rain.", silence(10.0)))
    assert notes == "", notes
    assert reason(server, render("rain " * 500)) == "prompt_too_long"
    assert reason(server, edit("rain " * 500, source)) == "prompt_too_long"
    say("more than 2,048 tokens: refused, prompt_too_long; silence is edited")
    listens(server, say, "Describe the sounds.")
