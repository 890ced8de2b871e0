#ifndef DOWNPIPE_CARCHIVE_H
#define DOWNPIPE_CARCHIVE_H

// What Swift cannot import from libarchive, and the locale of its names.

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

#if ARCHIVE_VERSION_NUMBER < 3004000
#error "libarchive 3.4 or later is needed"
#endif

// libarchive converts names to the locale of the thread. In the locale "C" it leaves those of tar and cpio as they are;
// those of zip and 7z it returns only in a locale that has their letters.

static inline locale_t downpipe_plain_locale(void) { return newlocale(LC_CTYPE_MASK, "C", (locale_t)0); }

static inline locale_t downpipe_unicode_locale(void) {
  static const char *const names[] = {"C.UTF-8", "en_US.UTF-8", "UTF-8"};
  for (unsigned index = 0; index < sizeof(names) / sizeof(*names); index++) {
    locale_t locale = newlocale(LC_CTYPE_MASK, names[index], (locale_t)0);
    if (locale) return locale;
  }
  return (locale_t)0;
}

#endif
