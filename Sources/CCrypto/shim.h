#ifndef DOWNPIPE_CCRYPTO_H
#define DOWNPIPE_CCRYPTO_H

// libcrypto, whose absence is reported with what to install.

#if !__has_include(<openssl/evp.h>)
#error "libcrypto is missing: install libssl-dev (Debian, Ubuntu), openssl-devel (Fedora) or openssl-dev (Alpine)"
#else
#include <openssl/opensslv.h>
#if OPENSSL_VERSION_NUMBER < 0x30000000L
#error "OpenSSL 3.0 or later is needed: install a newer libssl-dev (Debian 12, Ubuntu 22.04 or later)"
#endif
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#endif

#endif
