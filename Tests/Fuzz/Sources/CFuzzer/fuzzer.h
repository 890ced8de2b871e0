#ifndef DOWNPIPE_CFUZZER_H
#define DOWNPIPE_CFUZZER_H

#include <stddef.h>
#include <stdint.h>

// libFuzzer's driver, for a program with a `main` of its own.
int LLVMFuzzerRunDriver(int *count, char ***arguments, int (*test)(const uint8_t *bytes, size_t count));

#endif
