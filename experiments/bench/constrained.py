"""Plans written under constraints: how many are valid, and what the constraint costs.

    python experiments/bench/constrained.py [--quick] [--parts plans shipped]
        [--model FOLDER] [--hidden 64 --layers 2] [--device cpu --dtype float32] [--out FILE]

Prints a table for each part, then one JSON line. Needs the extra `transformers`.

    plans     256 plans of each model under each constraint with each library, temperature 1, free
              texts of at most 40 characters. The models: random weights, and the same trained for
              a few hundred steps on plans this script makes up. `repairs` are plans that a repair
              round would have to mend; `mask` is the time of masks, of taking tokens and of
              making the grammars of lines.
    shipped   the row "random, per line" once more, through the backend `transformers`

All but the tokens a second is time of the processor, on one thread: cores may be shared.

`--model` reads a model of your own in place of the two; `--hidden`, `--layers`, `--device` and
`--dtype` make the random one larger, for GPUs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from pearl.actions.library import load_library
from pearl.dsl.checker import compile_plan
from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.decoding.forms import line_constraint, plan_constraint, steps_constraint
from pearl.dsl.parser import parse
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType
from pearl.errors import ModelError, PlanError
from pearl.llm import ConstrainBy, Message, PlanTask, Request
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.transformers.decoding import Masks
from pearl.llm.backends.transformers.loading import LoadedWeights, load

MAX_TEXT = 40
MAX_STEPS = 6
END = "<|end|>"
WORDS = ["the", "hero", "ship", "leaked", "because", "of", "a", "storm", "Ada", "sold", "it", "why"]

Make = Callable[[ActionLibrary], Constraint]

CONSTRAINTS: dict[str, tuple[Make, ConstrainBy] | None] = {
    "none": None,
    "static": (partial(plan_constraint, max_steps=MAX_STEPS, max_text=MAX_TEXT), "grammar"),
    "per line": (partial(line_constraint, max_steps=MAX_STEPS, max_text=MAX_TEXT), "line"),
    "indexed": (partial(steps_constraint, max_steps=MAX_STEPS, max_text=MAX_TEXT), "grammar"),
}


# ---------------------------------------------------------------------------------------------
# Libraries, plans, models


def library(n: int) -> ActionLibrary:
    """The first n actions of the shipped library for QuALITY, and made-up ones after those."""
    draw = random.Random(0)
    own = list(load_library("quality").values())[:n]
    while len(own) < n:
        name = f"{draw.choice(WORDS)}_{draw.choice(WORDS)}_{len(own)}".upper()
        more = [Parameter(letter) for letter in "XYZ"[: draw.randrange(3)]]
        own.append(Action(name, (Parameter("CTX", ValueType.CONTEXT), *more), "Made up"))
    return ActionLibrary(f"{n} actions", own)


def made_up_plan(library: ActionLibrary, draw: random.Random) -> str:
    """A valid plan, half of them as the indexed grammar names things."""
    usable = [
        action
        for action in library.values()
        if action.parameters
        and action.returns is ValueType.TEXT
        and {p.type for p in action.parameters} <= {ValueType.CONTEXT, ValueType.TEXT}
    ]
    is_indexed = draw.random() < 0.5
    lines = [] if is_indexed else ["New actions:", "- None", ""]
    outputs: list[str] = []
    for i in range(1, draw.randint(2, MAX_STEPS)):
        action = draw.choice(usable)
        passed = []
        for parameter in action.parameters[: action.min_arity]:
            if parameter.type is ValueType.CONTEXT:
                passed.append("CTX")
            elif outputs and draw.random() < 0.6:
                passed.append(draw.choice(outputs))
            else:
                passed.append(f'"{phrase(draw, 3)}"')
        output = f"v{i}" if is_indexed else f"{draw.choice(WORDS)}_{i}"
        outputs.append(output)
        lines.append(f"{i}. {output} = {action.name}({', '.join(passed)}) : {phrase(draw, 5)}")
    return "\n".join(lines)


def phrase(draw: random.Random, most: int) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, most)))


def trained_tokenizer(texts: Sequence[str], n_tokens: int) -> Tokenizer:
    """A byte-level BPE tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=n_tokens, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def wrapped(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END)


def save_random(folder: Path, plans: Sequence[str], hidden: int, layers: int) -> None:
    """A Llama of random weights with a tokenizer of 500 tokens."""
    tokenizer = wrapped(trained_tokenizer(plans, 500))
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden // 32),
        max_position_embeddings=4_096,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def train(folder: Path, to: Path, plans: Sequence[str], n_steps: int) -> None:
    """Teach a model to write plans; a plan follows the token that ends one."""
    weights = load(folder)
    model, tokenizer = weights.model.float(), weights.tokenizer
    end = tokenizer.eos_token_id
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    draw = random.Random(1)
    for _ in range(n_steps):
        rows = [[end, *tokenizer(draw.choice(plans))["input_ids"], end][:160] for _ in range(16)]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [end] * (longest - len(row)) for row in rows])
        labels = torch.tensor([row + [-100] * (longest - len(row)) for row in rows])
        loss = model(input_ids=ids.to(model.device), labels=labels.to(model.device)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    tokenizer.save_pretrained(to)
    model.save_pretrained(to)


# ---------------------------------------------------------------------------------------------
# Many plans at once


def write_batch(
    weights: LoadedWeights, hold_one: Callable[[], Masks] | None, n: int, limit: int, seed: int
) -> tuple[list[str | None], int, float]:
    """Plans written side by side, with the masks of the shipped backend."""
    (end,) = weights.ends
    generator = torch.Generator().manual_seed(seed)
    mask_s = 0.0
    began = time.process_time()
    held = [hold_one() for _ in range(n)] if hold_one else []
    mask_s += time.process_time() - began
    texts: list[str | None] = [None] * n
    tokens: list[list[int]] = [[] for _ in range(n)]
    alive = list(range(n))
    cache = DynamicCache(config=weights.model.config)
    ids = torch.full((n, 1), end, device=weights.model.device)
    n_tokens = 0
    while alive and len(tokens[alive[0]]) < limit:
        out = weights.model(input_ids=ids, past_key_values=cache, use_cache=True)
        logits = out.logits[:, -1, : weights.n_tokens].float().cpu()
        if held:
            began = time.process_time()
            words = np.stack([held[i].mask() for i in alive])
            mask_s += time.process_time() - began
            bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
            closed = torch.from_numpy(bits[:, : weights.n_tokens] == 0)
            logits.masked_fill_(closed, -torch.inf)
        chances = torch.softmax(logits, dim=-1)
        drawn = torch.multinomial(chances, 1, generator=generator)[:, 0].tolist()
        n_tokens += len(drawn)
        began = time.process_time()
        stay = []
        for row, (i, token) in enumerate(zip(alive, drawn, strict=True)):
            if token == end:
                texts[i] = held[i].text if held else weights.tokenizer.decode(tokens[i])
                continue
            stay.append(row)
            tokens[i].append(token)
            if held:
                held[i].take(token)
        mask_s += time.process_time() - began if held else 0.0
        if len(stay) < len(alive):
            cache.batch_select_indices(torch.tensor(stay, device=ids.device, dtype=torch.long))
            alive = [alive[row] for row in stay]
        ids = torch.tensor([[drawn[row]] for row in stay], device=weights.model.device)
    return texts, n_tokens, mask_s


def parses(text: str | None) -> bool:
    """Whether the strict reader takes a plan."""
    try:
        parse(text or "")
    except PlanError:
        return False
    return text is not None


def is_valid(text: str | None, library: ActionLibrary) -> bool:
    """Whether a plan needs no repair."""
    try:
        compile_plan(text or "", library)
    except PlanError:
        return False
    return parses(text)


def counted(texts: Sequence[str | None], library: ActionLibrary) -> dict[str, Any]:
    n_valid = sum(is_valid(text, library) for text in texts)
    return {
        "plans": len(texts),
        "stopped": sum(text is not None for text in texts),
        "parse": sum(map(parses, texts)),
        "valid": n_valid,
        "repairs": len(texts) - n_valid,
    }


def plan_rows(own: dict[str, LoadedWeights], options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for model_name, weights in own.items():
        for n_actions in options.actions:
            actions = library(n_actions)
            for name, way in CONSTRAINTS.items():
                hold_one = None
                if way:
                    make, by = way
                    hold_one = partial(Masks, make(actions), by, weights.vocabulary)
                texts: list[str | None] = []
                n_tokens, mask_s, began = 0, 0.0, time.perf_counter()
                with torch.inference_mode():
                    while len(texts) < options.plans:
                        n = min(options.batch, options.plans - len(texts))
                        limit = 1_600 if way else 400
                        done = write_batch(weights, hold_one, n, limit, len(texts))
                        texts += done[0]
                        n_tokens += done[1]
                        mask_s += done[2]
                rows.append(
                    {"model": model_name, "constraint": name, "actions": n_actions}
                    | counted(texts, actions)
                    | {
                        "tokens_per_s": round(n_tokens / (time.perf_counter() - began)),
                        "mask_us": round(1e6 * mask_s / n_tokens) if way else None,
                    }
                )
                print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def shipped_row(folder: Path, n_plans: int) -> dict[str, Any]:
    """Plans through the backend, one after the other."""
    actions = library(80)
    constraint = line_constraint(actions, max_steps=MAX_STEPS, max_text=MAX_TEXT)

    async def ask() -> tuple[list[str | None], int]:
        model = create_model(f"transformers:{folder}", ModelSettings())
        texts: list[str | None] = []
        n_tokens = 0
        for seed in range(n_plans):
            task = PlanTask("why?", actions)
            request = Request(
                (Message("user", "why?"),), task, 3_000, 1.0, seed, constraint, "line"
            )
            try:
                completion = await model.complete(request)
            except ModelError:
                texts.append(None)
            else:
                texts.append(completion.text)
                n_tokens += completion.usage.n_output_tokens
        await model.aclose()
        return texts, n_tokens

    began = time.perf_counter()
    texts, n_tokens = asyncio.run(ask())
    speed = round(n_tokens / (time.perf_counter() - began))
    named = {"model": "through the backend", "constraint": "per line", "actions": 80}
    return named | counted(texts, actions) | {"tokens_per_s": speed, "mask_us": None}


# ---------------------------------------------------------------------------------------------


def show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*("" if row.get(c) is None else str(row[c]) for c in columns))
    Console(width=140).print(table)


def models_to_ask(folder: Path, options: argparse.Namespace) -> dict[str, Path]:
    """Folders of the models, made where none is given."""
    if options.model:
        return {options.model.name: options.model}
    draw = random.Random(0)
    libraries = [library(n) for n in options.actions]
    plans = [made_up_plan(draw.choice(libraries), draw) for _ in range(3_000)]
    found = {"random": folder / "random", "trained": folder / "trained"}
    save_random(found["random"], plans, options.hidden, options.layers)
    began = time.perf_counter()
    train(found["random"], found["trained"], plans, options.steps)
    print(f"trained in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few plans")
    names = ["plans", "shipped"]
    parser.add_argument("--parts", nargs="+", choices=names, default=names)
    parser.add_argument("--plans", type=int, help="of each row")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--actions", type=int, nargs="+", default=[5, 80, 500])
    parser.add_argument("--steps", type=int, default=350, help="of training")
    parser.add_argument("--model", type=Path, help="a folder of weights")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"])
    parser.add_argument("--out", type=Path, help="write the JSON line here as well")
    options = parser.parse_args()
    options.plans = options.plans or (16 if options.quick else 256)
    if options.quick:
        options.steps = min(options.steps, 60)
    torch.set_num_threads(1)  # two threads are slower for models as small as these
    results: dict[str, Any] = {"bench": "constrained", "device": options.device}
    with tempfile.TemporaryDirectory() as name:
        folders = models_to_ask(Path(name), options)
        own = {model: load(folder) for model, folder in folders.items()}
        for weights in own.values():
            kind = getattr(torch, options.dtype) if options.dtype else weights.model.dtype
            weights.model.to(options.device, kind)
        first = next(iter(own))
        if "plans" in options.parts:
            results["plans"] = plan_rows(own, options)
            show("plans", results["plans"])
        if "shipped" in options.parts:
            results["shipped"] = [shipped_row(folders[first], options.plans)]
            show("through the backend", results["shipped"])
    line = json.dumps(results)
    print(line)
    if options.out:
        options.out.write_text(f"{line}\n")


if __name__ == "__main__":
    main()
