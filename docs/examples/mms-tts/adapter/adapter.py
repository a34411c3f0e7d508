"""A text-to-speech model of the Hugging Face hub: VITS as transformers has it (facebook/mms-tts-eng and its like)."""

from torus_ray.audio import Clip
from torus_ray.heads import Model, Refused


class MmsTts(Model):
    def __init__(self, noise_scale=0.667, speaking_rate=1.0):
        self.noise_scale = noise_scale
        self.speaking_rate = speaking_rate

    def load(self, host):
        import torch
        from transformers import VitsModel, VitsTokenizer

        torch.set_num_threads(host.threads)
        self.torch = torch
        self.tokenizer = VitsTokenizer.from_pretrained(host.weights["model"])
        self.model = VitsModel.from_pretrained(host.weights["model"]).to(host.device).eval()
        self.model.noise_scale = self.noise_scale
        self.model.speaking_rate = self.speaking_rate

    def close(self):
        self.model = None

    def generate(self, requests):
        return [request.reply(self.spoken(request.words, request.seed)) for request in requests]

    def spoken(self, words, seed):
        tokens = self.tokenizer(words, return_tensors="pt").to(self.model.device)
        if tokens["input_ids"].shape[1] < 2:
            raise Refused("no_words", f"nothing in {words!r} can be spoken")
        self.torch.manual_seed(seed)  # on every device
        with self.torch.inference_mode():
            wave = self.model(**tokens).waveform[0]
        return Clip(wave.float().cpu().numpy(), self.model.config.sampling_rate)
