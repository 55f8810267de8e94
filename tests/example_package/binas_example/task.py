"""A task: it greets everybody who has a network in the run."""

from pydantic import Field

from binas.base.files import write_text
from binas.base.progress import Progress
from binas.base.settings import Settings
from binas.run.run import Run
from binas.tasks import Step, Task


class GreetSettings(Settings):
    """A greeting."""

    name: str = Field("world", description="whom to greet")


def greet(run: Run, progress: Progress) -> None:
    text = f"hello, {run.settings(GreetSettings).name}: {len(run.networks)} networks"
    write_text(run.folder / "greeting.txt", text + "\n")
    progress.say(text)


GREET = Task(
    "greet",
    GreetSettings,
    (Step("greet", "write a greeting", greet, ("greeting.txt",), ("greet",), after=("finetune",)),),
)
