import re

ZEILE = re.compile(r"(?P<zeit>\d\d:\d\d) (?P<stufe>[A-Z]+) (?P<text>.*)")


def lesen(pfad):
    # leere Zeilen werden uebersprungen
    with open(pfad, encoding="utf-8") as datei:
        for nummer, zeile in enumerate(datei, start=1):
            if not zeile.strip():
                continue
            treffer = ZEILE.fullmatch(zeile.rstrip("\n"))
            if treffer is None:
                # eine Zeile ohne Uhrzeit gehoert zur vorigen
                yield nummer, None, zeile.strip()
            else:
                yield nummer, treffer["stufe"], treffer["text"]


def fehler(pfad):
    return [eintrag for eintrag in lesen(pfad) if eintrag[1] == "ERROR"]  # nur die schweren
