#include <stddef.h>

#define SIZE 64

struct ring {
	int data[SIZE];
	size_t head; /* naechster freier Platz */
	size_t count;
};

/* Legt einen Wert ab. Gibt 0 zurueck, wenn der Ring voll ist. */
int ring_push(struct ring *r, int value)
{
	if (r->count == SIZE)
		return 0;
	r->data[r->head] = value;
	r->head = (r->head + 1) % SIZE;
	r->count++;
	return 1;
}

/* Nimmt den aeltesten Wert heraus. Gibt 0 zurueck, wenn der Ring leer ist. */
int ring_pop(struct ring *r, int *value)
{
	if (r->count == 0)
		return 0;
	*value = r->data[(r->head + SIZE - r->count) % SIZE];
	r->count--;
	return 1;
}
