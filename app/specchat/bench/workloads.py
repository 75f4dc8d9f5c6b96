"""What `specchat bench` asks: texts of our own, so that they can be shipped and were in no model's training."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Workload:
    """Prompts of one kind."""

    name: str
    prompts: tuple[str, ...]


PARAGRAPHS = (
    "The ferry to the island leaves twice a day in winter. If the wind turns north, the captain waits, because the "
    "harbour mouth is narrow and the waves break across it. Locals keep a bag packed and a book in it.",
    "We tried the new oven on Saturday. The bread rose too fast and tore along one side, yet the crumb was open and "
    "moist. Next time we will lower the heat after ten minutes and cut the loaf a little deeper.",
    "The committee met for three hours and agreed on the date but not on the place. Two members want the old library, "
    "one wants the school hall, and the chair says that neither has enough chairs for the guests.",
    "My grandfather kept bees behind the railway shed. He said that they liked the warm wall and did not mind the "
    "trains. When he moved to town he left the hives to the signalman, who still brings us a jar in August.",
    "The bridge was closed in March because a crack had opened in the third pier. Lorries now drive round by the mill, "
    "which takes twenty minutes more, and the baker in the village complains that nobody stops there any longer.",
    "She learned to sail on a lake that was hardly larger than a football field. The boat was old and the sail had "
    "been mended so often that it showed every colour of blue, but it taught her to feel the wind before she saw it.",
)
QUESTIONS = (
    "Why is the sky blue during the day and red in the evening?",
    "What should I think about before I adopt a dog?",
    "Explain what inflation is to somebody who has never heard the word.",
    "How does a bicycle stay upright while it is moving?",
    "What makes a good teacher?",
    "Why do we dream?",
)

_CLASS = """\
class Shelf:
    def __init__(self, width, height):
        self.width = width
        self.height = height
        self.boxes = []

    def add(self, box):
        if self.used() + box.width > self.width:
            raise ValueError("the shelf is full")
        self.boxes.append(box)

    def used(self):
        return sum(box.width for box in self.boxes)

    def remove(self, name):
        for box in self.boxes:
            if box.name == name:
                self.boxes.remove(box)
                return box
        raise KeyError(name)

    def __len__(self):
        return len(self.boxes)
"""

_MINUTES = """\
Minutes of the garden club, 4 May. Present: Ada, Bruno, Chen, Dora. Ada reported that the greenhouse needs eleven new
panes; the glazier asks 340 for the work and can come in the second week of June. Bruno has found a second-hand pump for
the pond at 85, with a guarantee of one year. Chen asked whether the club wants to open its gates on the town's day of
gardens; all agreed, and Dora will register the club by the end of the month. The compost was discussed at length. Bruno
wants a third bay, Ada thinks that two are enough if they are turned every three weeks. It was decided to build the
third bay from the old fence and to look at it again in autumn. Dora reminded everybody that the key of the shed is
still missing.
"""

_RECORDS = "name,town,born\nAda Lind,Bergen,1984\nBruno Vogt,Linz,1979\nChen Wei,Tainan,1990\nDora Klein,Mainz,1988\n"

WORKLOADS = (
    Workload(
        "code",
        (
            "Write a Python function that merges two sorted lists into one sorted list.",
            "Write a Python class for a bank account with deposit, withdraw and a history.",
        ),
    ),
    Workload("prose", QUESTIONS[:2]),
    Workload("json", (f"Turn this table into a JSON list of objects, nothing else.\n\n{_RECORDS}",)),
    Workload("summary", (f"Summarize these minutes in five sentences.\n\n{_MINUTES}",)),
    Workload(
        "rewrite",
        (
            f"Rename the method `used` to `used_width`. Return only the whole code.\n\n```python\n{_CLASS}```",
            f"Correct the spelling, change nothing else.\n\n{PARAGRAPHS[3]} {PARAGRAPHS[4]}",
        ),
    ),
)
ACCEPTANCE = (
    Workload("rewrite a paragraph", tuple(f"Rewrite this paragraph in your own words.\n\n{p}" for p in PARAGRAPHS)),
    Workload("open question", QUESTIONS),
)
