"""The training loop, on a line that has to be learned."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'train'")

from dataclasses import replace  # noqa: E402

from dialeval.errors import JobError, UsageError  # noqa: E402
from dialeval.training.loop import Settings, Validation, forget_checkpoint, train  # noqa: E402


class Line:
    """Learns y = 3x - 1 with dropout, so that the generator's state matters."""

    def __init__(self, dies_at=None):
        torch.manual_seed(7)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(1, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1)
        )
        self.dies_at = dies_at
        self.steps = 0

    def parameters(self):
        return dict(self.model.named_parameters())

    def batches(self, epoch):
        generator = torch.Generator().manual_seed(epoch)
        return [torch.rand(4, 1, generator=generator) for _ in range(10)]

    def loss(self, x):
        self.steps += 1
        if self.steps == self.dies_at:
            raise KeyboardInterrupt
        self.model.train()
        return ((self.model(x) - (3 * x - 1)) ** 2).mean()

    def validate(self):
        self.model.eval()
        x = torch.linspace(0, 1, 11)[:, None]
        with torch.no_grad():
            loss = float(((self.model(x) - (3 * x - 1)) ** 2).mean())
        return Validation(loss, {"error": loss**0.5})


SETTINGS = Settings(epochs=5, learning_rate=0.05, checkpoint_seconds=0)


def weights(recipe):
    return {name: p.detach().clone() for name, p in recipe.parameters().items()}


def test_a_kill_in_the_last_validation_does_not_skip_it(tmp_path):
    """The steps end inside an epoch, and a checkpoint is due at every one."""
    settings = replace(SETTINGS, steps=15)
    whole = Line()
    expected = train(whole, settings, tmp_path / "whole", {})
    killed = Line()
    validate, calls = killed.validate, []

    def deadly():
        calls.append(1)
        if len(calls) == len(expected.curve):
            raise KeyboardInterrupt
        return validate()

    killed.validate = deadly
    with pytest.raises(KeyboardInterrupt):
        train(killed, settings, tmp_path / "killed", {})
    resumed = Line()
    state = train(resumed, settings, tmp_path / "killed", {})
    assert state.curve == expected.curve
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(resumed)[name])


def test_training_learns_and_keeps_the_best_epoch(tmp_path):
    recipe = Line()
    state = train(recipe, SETTINGS, tmp_path, {})
    assert state.curve[0]["epoch"] == -1
    assert len(state.curve) == 6
    assert state.best_loss < state.curve[0]["validation_loss"] / 4
    assert recipe.validate().loss == pytest.approx(state.best_loss)
    forget_checkpoint(tmp_path)
    assert not list(tmp_path.iterdir())


class Unlearning(Line):
    """Gets worse with every epoch, by its own account."""

    validations = 0

    def validate(self):
        self.validations += 1
        return Validation(float(self.validations), {})


def test_the_last_epoch_is_kept_where_that_is_asked_for(tmp_path):
    first, last = Unlearning(), Unlearning()
    start = weights(first)
    train(first, SETTINGS, tmp_path / "best", {})
    train(last, replace(SETTINGS, keep="last"), tmp_path / "last", {})
    assert all(torch.equal(start[name], own) for name, own in weights(first).items())
    assert not any(torch.equal(start[name], own) for name, own in weights(last).items())


def test_a_validation_that_is_no_number_ends_the_training_with_a_reason(tmp_path):
    recipe = Line()
    recipe.validate = lambda: Validation(float("nan"), {})
    with pytest.raises(JobError, match="validation gives nan after step 0"):
        train(recipe, SETTINGS, tmp_path, {})


@pytest.mark.parametrize("step", [1, 2, 10, 11, 33, 50])
def test_a_killed_training_ends_with_the_same_weights(tmp_path, step):
    whole = Line()
    expected = train(whole, SETTINGS, tmp_path / "whole", {})
    (tmp_path / "killed").mkdir()
    with pytest.raises(KeyboardInterrupt):
        train(Line(dies_at=step), SETTINGS, tmp_path / "killed", {})
    resumed = Line()
    state = train(resumed, SETTINGS, tmp_path / "killed", {})
    assert state == expected
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(resumed)[name])


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(Line(dies_at=5), SETTINGS, tmp_path, {"data": "a"})
    with pytest.raises(UsageError, match="another training"):
        train(Line(), SETTINGS, tmp_path, {"data": "b"})


def test_training_stops_when_nothing_gets_better(tmp_path):
    settings = Settings(epochs=50, learning_rate=0.0, patience=2)
    state = train(Line(), settings, tmp_path, {})
    assert state.curve[-1]["epoch"] == 1
    assert state.best_epoch == -1


def test_the_global_generator_is_left_as_it_was(tmp_path):
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    train_recipe = Line.__new__(Line)
    before = torch.random.get_rng_state()
    Line.__init__(train_recipe)
    torch.random.set_rng_state(before)
    train(train_recipe, SETTINGS, tmp_path, {})
    assert torch.equal(torch.rand(1), expected)


def test_an_epoch_with_fewer_batches_than_the_first_is_told_and_not_repeated_for_ever(tmp_path):
    class Shrinking(Line):
        def batches(self, epoch):
            return super().batches(epoch)[epoch:]

    with pytest.raises(JobError, match="epoch 2 has fewer batches than the first, which has 10"):
        train(Shrinking(), SETTINGS, tmp_path / "out", {})
