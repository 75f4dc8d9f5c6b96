import math


def area_of_circle(radius):
    return math.pi * radius**2


def area_of_rectangle(width, height):
    return width * height


def perimeter(points):
    total = 0.0
    for (x1, y1), (x2, y2) in zip(points, points[1:] + points[:1]):
        total += math.hypot(x2 - x1, y2 - y1)
    return total


LARGEST = 1_000_000  # square metres
