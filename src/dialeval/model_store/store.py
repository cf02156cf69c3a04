"""The model cache: one directory per model, each with a record of what lies in it.

A model is prepared in a hidden directory beside its destination and renamed when it is whole, under
a lock: a killed fetch leaves nothing that looks like a model, and two fetches do the work once.

Weights are identified by sha256 digests, and by a fingerprint made of them. A fingerprint is
`LEAD-REST`. The rest is a digest of everything that can change an answer. The lead is what
signatures show, so that people can compare it with something: for a catalogue model the sha256 of
its main weight file, for a hub model the commit, for a local directory the rest itself.

A quantised GGUF file is converted once to a directory of safetensors, because transformers needs
half a minute to read a GGUF and refuses to save what it has read. The dequantised weights are
copied into a fresh model of the same configuration and saved in fp32: fp16 would halve the file,
but rounds 4-bit weights (scale times step plus minimum) and moves log-probabilities by up to 0.03.
Memory-mapped, the result loads in a tenth of a second.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dialeval.errors import DialevalError, JobError, UsageError
from dialeval.model_store.catalogue import Entry, Wheel, Wheels
from dialeval.model_store.weights import read_json
from dialeval.progress import FetchProgress, Step, silent_fetch
from dialeval.storage import cache_directory, file_stamp, models_directory, sha256_of, write_json

CONVERSION = "gguf-1"
"""Part of the fingerprint of a converted GGUF: raise it when the conversion changes an answer."""

_LEAD = 16


def fingerprint_of(digests: Mapping[str, str], lead: str = "", extra: str = "") -> str:
    """Returns the fingerprint of named parts; the order in which they are given does not matter."""
    text = json.dumps([sorted(digests.items()), extra])
    rest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{(lead or rest)[:_LEAD]}-{rest[:32]}"


def wheel_fingerprint(entry: Entry) -> str:
    """Known before anything is fetched: the catalogue holds all the hashes."""
    assert isinstance(entry.source, Wheel | Wheels)
    files = entry.source.files
    main = max(files, key=lambda file: file.size)
    converted = main.name.endswith(".gguf") and not is_kept_as_gguf(entry)
    extra = CONVERSION if converted else entry.facts.get("runtime", "")
    return fingerprint_of({file.name: file.sha256 for file in files}, main.sha256, extra)


def is_kept_as_gguf(entry: Entry) -> bool:
    """Returns whether llama.cpp reads its weights as they are; otherwise they become
    safetensors."""
    return entry.facts.get("runtime") == "llama.cpp"


class KnownDigests:
    """sha256 by path, remembered in the cache directory until the file changes or until a reboot.

    A gigabyte takes a second to hash; the second run on the same directory takes none. A file has
    changed if its size, its inode or one of its times has (nobody can set the second one, of the
    inode). A disk that loses bits changes none of them: so every file is read anew once per boot,
    and by `again`, which is what `dialeval models check` uses.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_directory() / "digests.json"
        self._boot = boot_id()
        self._known = self._read()

    def of(self, path: Path) -> str:
        row = self._known.get(str(path.resolve()))
        stamp = [*file_stamp(path), self._boot]
        return row[-1] if row and row[:-1] == stamp else self.again(path)

    def again(self, path: Path) -> str:
        """Reads every byte, whatever is remembered."""
        stamp = [*file_stamp(path), self._boot]
        row = [*stamp, sha256_of(path)]
        self._known = {**self._read(), str(path.resolve()): row}
        # Without a name of the boot nothing is remembered for longer than this object.
        if self._boot:
            with suppress(
                OSError, DialevalError
            ):  # a cache that cannot be written costs time, nothing else
                rows = {key: [*row, _checksum(key, row)] for key, row in self._known.items()}
                write_json(self.path, rows)
        return str(row[-1])

    def _read(self) -> dict[str, list[Any]]:
        """Reads the rows of this boot. A damaged file or row costs time, nothing else."""
        try:
            rows = json.loads(self.path.read_text(encoding="utf-8")).items()
            return {
                key: row[:-1]
                for key, row in rows
                if row[-3] == self._boot and row[-1] == _checksum(key, row[:-1])
            }
        except (OSError, ValueError, AttributeError, TypeError, LookupError, RecursionError):
            return {}


def boot_id() -> str:
    """Returns a name for the time since this machine was started; empty where the system has
    none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _checksum(key: str, row: Sequence[Any]) -> str:
    text = json.dumps([key, *row])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


RECORD = "dialeval-model.json"
"""name, role, licence, facts, fingerprint, source, and size and sha256 of each file."""


def read_record(directory: Path) -> dict[str, Any]:
    """Reads the record of a model directory; empty where dialeval did not write one."""
    return read_json(directory / RECORD)


def write_record(
    directory: Path, record: Mapping[str, Any], paths: Iterable[Path] | None = None
) -> None:
    """Adds to the record what lies in the directory now, so that damage is found later.

    `paths` are the files that count; by default all of them.
    """
    if paths is None:
        paths = [path for path in directory.rglob("*") if path.is_file() and path.name != RECORD]
    files = {
        path.relative_to(directory).as_posix(): {
            "size": path.stat().st_size,
            "sha256": sha256_of(path),
        }
        for path in sorted(paths)
    }
    write_json(directory / RECORD, {**record, "files": files})


def damage(directory: Path, digest: Callable[[Path], str] | None = None) -> str:
    """Returns what is wrong with a recorded directory; empty if nothing is.

    Sizes are compared in no time; `digest` (`KnownDigests().of`, or `again`) reads the files.
    """
    record = read_record(directory)
    files = record.get("files", {})
    if record and not (isinstance(files, dict) and files):
        return f"{RECORD} lists no files"
    for name, expected in files.items():
        path = directory / name
        if not isinstance(expected, dict) or not expected.keys() >= {"size", "sha256"}:
            return f"{RECORD} does not say what {name} should be"
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != expected["size"]:
            return f"{name} has {path.stat().st_size} bytes and should have {expected['size']}"
        if digest and digest(path) != expected["sha256"]:
            return f"{name} has changed (expected sha256 {expected['sha256']})"
    return ""


def is_whole(directory: Path, fingerprint: str) -> bool:
    """Returns whether this very model lies in the directory, undamaged."""
    try:
        known = read_record(directory).get("fingerprint")
    except UsageError:  # a damaged record: the model is made anew
        return False
    return known == fingerprint and not damage(directory, KnownDigests().of)


@contextmanager
def prepared(
    destination: Path, fingerprint: str, model: str, progress: FetchProgress
) -> Iterator[Path | None]:
    """Yields a fresh directory to fill, or None if the model is installed.

    If the block ends well, the directory becomes `destination`; otherwise it vanishes.
    """
    if is_whole(destination, fingerprint):
        yield None
        return
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with _locked(destination, model, progress):
            if is_whole(destination, fingerprint):
                yield None
                return
            for leftover in destination.parent.glob(f".{destination.name}.part-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            part = tempfile.mkdtemp(prefix=f".{destination.name}.part-", dir=destination.parent)
            work = Path(part)
            try:
                yield work
                _settle(work)
                if destination.exists():
                    shutil.rmtree(destination)
                work.rename(destination)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise JobError(
            f"{model}: cannot be stored in {destination.parent} ({error})."
            " Free some space, or point DIALEVAL_CACHE elsewhere."
        ) from error


def _settle(directory: Path) -> None:
    """On the disk, and readable for whoever may read the user's other files."""
    mask = os.umask(0)
    os.umask(mask)
    for path in (directory, *directory.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())


@contextmanager
def _locked(destination: Path, model: str, progress: FetchProgress) -> Iterator[None]:
    lock = FileLock(destination.parent / f".{destination.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(Step(model, "wait", text="another process is fetching it"))
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def gguf_fingerprint(gguf: Path) -> str:
    """Returns the identity of a GGUF file that somebody brought."""
    sha256 = KnownDigests().of(gguf)
    return fingerprint_of({"gguf": sha256}, sha256, CONVERSION)


def converted(gguf: Path, progress: FetchProgress = silent_fetch) -> Path:
    """Returns the directory of safetensors made from somebody's own GGUF file, in the model
    cache."""
    fingerprint = gguf_fingerprint(gguf)
    destination = models_directory() / f"gguf-{fingerprint.partition('-')[0]}"
    with prepared(destination, fingerprint, gguf.name, progress) as work:
        if work is not None:
            progress(Step(gguf.name, "convert"))
            convert_gguf(gguf, work)
            write_record(work, {"name": gguf.name, "role": "causal-lm", "fingerprint": fingerprint})
    return destination


def convert_gguf(gguf: Path, destination: Path) -> None:
    """Writes model.safetensors, config.json and the tokenizer with its chat template."""
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise UsageError(f"{error}. Install: pip install 'dialeval[models]'") from error

    place = {"gguf_file": gguf.name, "local_files_only": True}
    with _quiet():
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), **place)
            read = AutoModelForCausalLM.from_pretrained(
                str(gguf.parent), dtype=torch.float32, **place
            )
        except Exception as error:  # the parser of a damaged file can fail in any way
            raise JobError(f"{gguf}: this GGUF cannot be read: {error}") from error
        config = type(read.config).from_dict(_plain(read.config.to_dict()))
        build: Any = AutoModelForCausalLM.from_config
        fresh = build(config, dtype=torch.float32)
        fresh.load_state_dict(read.state_dict(), strict=True)
        fresh.tie_weights()
        fresh.save_pretrained(str(destination), safe_serialization=True, max_shard_size="100GB")
    _write_tokenizer(tokenizer, gguf, config.max_position_embeddings, destination)


def _plain(config: dict[str, Any]) -> dict[str, Any]:
    """Without the traces of the file that it was read from."""
    traces = ("quantization_config", "_name_or_path", "_model_name_or_path")
    return {key: value for key, value in config.items() if key not in traces}


def _write_tokenizer(tokenizer: Any, gguf: Path, context: int, destination: Path) -> None:
    backend = tokenizer.backend_tokenizer
    if _pretokenizer(gguf) == "smollm":
        backend.pre_tokenizer = _digits_first()
    backend.save(str(destination / "tokenizer.json"))
    special = ("bos_token", "eos_token", "unk_token", "pad_token")
    write_json(
        destination / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{name: getattr(tokenizer, name) for name in special if getattr(tokenizer, name)},
            "model_max_length": context,
            "clean_up_tokenization_spaces": False,
            "chat_template": tokenizer.chat_template,
        },
    )


def _pretokenizer(gguf: Path) -> str:
    from gguf import GGUFReader

    field = GGUFReader(gguf).fields.get("tokenizer.ggml.pre")
    return str(field.contents()) if field else ""


def _digits_first() -> Any:
    """Returns what `smollm` means: every digit apart, then GPT-2's rule.

    transformers applies GPT-2's rule alone to any GGUF, which splits the white space before a
    number ("\\n\\n1", two spaces and a digit) in another way than the model was trained with.
    """
    from tokenizers import pre_tokenizers

    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """transformers draws bars of its own; ours is the one that is shown."""
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        # The bar of the dequantisation heeds neither setting.
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
