// libpq, whose absence is reported with what to install.

#if !__has_include(<libpq-fe.h>)
#error "libpq is missing: install libpq-dev and pkg-config (Debian, Ubuntu), or libpq-devel and pkgconf (Fedora)"
#else
#include <libpq-fe.h>
#endif
