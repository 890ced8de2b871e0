#ifndef DOWNPIPE_CPAGEFILES_H
#define DOWNPIPE_CPAGEFILES_H

// Returns the bytes of a file of the page, which are in the program, and their number; a null pointer if there is none.
const unsigned char *downpipe_page_file(const char *name, unsigned long *size);

#endif
