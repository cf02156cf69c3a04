"""Readers: files of many formats -> samples. `load` is the way in.

| you look for | file |
|---|---|
| how a file is found, opened and read | `load.py`, `detect.py`, `source.py` |
| what a reader is, how it reports problems | `reader.py`, `fields.py`, `ratings.py` |
| what records are kept in | `containers.py`, `json_stream.py`, `plain_csv.py`, `arrow.py` |
| our own fields, prompts and completions | `plain_record.py`, `plain_jsonl.py` |
| chats: OpenAI, Anthropic, ShareGPT, WildChat, LMSYS, ChatGPT, Claude | `chat.py`, `messages.py` |
| traces: Langfuse, LangSmith, OpenTelemetry, OpenInference | `traces.py` |
| text with names | `transcript.py` |
| rated sets | `rated.py` (FED, USR, GRADE, DSTC10, ...), `holistic.py`, `convai.py` |
| corpora: DailyDialog, Topical-Chat, Cornell, Tencent, ... | `corpora.py` |
| `data check`, `data convert` | `check.py`, `convert.py` |
"""

from dialeval.readers.check import CheckReport, QualityCheck, check
from dialeval.readers.convert import convert
from dialeval.readers.detect import formats
from dialeval.readers.load import Samples, load
from dialeval.readers.reader import Place, Problems, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source

__all__ = [
    "CheckReport",
    "Place",
    "Problems",
    "QualityCheck",
    "ReadOptions",
    "Reader",
    "Samples",
    "Source",
    "UnreadableError",
    "check",
    "convert",
    "formats",
    "load",
]
