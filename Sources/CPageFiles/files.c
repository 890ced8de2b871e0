#include "CPageFiles.h"

#include <string.h>

// Of C23, and known to the compilers that come with Swift. As array literals of Swift the files took half a minute to compile.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char index_html[] = {
#embed "index.html"
};
static const unsigned char page_css[] = {
#embed "page.css"
};
static const unsigned char page_js[] = {
#embed "page.js"
};
static const unsigned char link_js[] = {
#embed "link.js"
};
static const unsigned char lists_js[] = {
#embed "lists.js"
};
static const unsigned char add_js[] = {
#embed "add.js"
};

static const struct {
  const char *name;
  const unsigned char *bytes;
  unsigned long size;
} files[] = {
    {"index.html", index_html, sizeof index_html}, {"page.css", page_css, sizeof page_css},
    {"page.js", page_js, sizeof page_js},          {"link.js", link_js, sizeof link_js},
    {"lists.js", lists_js, sizeof lists_js},       {"add.js", add_js, sizeof add_js},
};

const unsigned char *downpipe_page_file(const char *name, unsigned long *size) {
  for (unsigned long index = 0; index < sizeof files / sizeof *files; index++) {
    if (strcmp(files[index].name, name) != 0) continue;
    *size = files[index].size;
    return files[index].bytes;
  }
  return 0;
}
