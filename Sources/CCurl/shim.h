#ifndef DOWNPIPE_CCURL_H
#define DOWNPIPE_CCURL_H

// What Swift cannot import from libcurl: its variadic calls, and options that older versions do not have.

#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static inline const curl_version_info_data *downpipe_version_info(void) {
  return curl_version_info(CURLVERSION_NOW);
}

#if LIBCURL_VERSION_NUM < 0x074400
#error "libcurl 7.68 or later is needed, for curl_multi_wakeup"
#endif

// Names that older headers do not have.
#if LIBCURL_VERSION_NUM < 0x074900
static const CURLcode CURLE_PROXY = (CURLcode)97;
#endif
#if LIBCURL_VERSION_NUM < 0x075000
#define CURL_PREREQFUNC_OK 0
#define CURL_PREREQFUNC_ABORT 1
#endif

// MARK: Options of an easy handle

static inline CURLcode downpipe_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode downpipe_set_text(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode downpipe_set_pointer(CURL *easy, CURLoption option, void *value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode downpipe_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
  return curl_easy_setopt(easy, option, value);
}

typedef size_t (*downpipe_data_callback)(char *, size_t, size_t, void *);

// CURLOPT_WRITEFUNCTION and CURLOPT_HEADERFUNCTION.
static inline CURLcode downpipe_set_data_callback(CURL *easy, CURLoption option, downpipe_data_callback callback) {
  return curl_easy_setopt(easy, option, callback);
}

typedef int (*downpipe_seek_callback)(void *, curl_off_t, int);

// Sets the place from which the body of a request is read.
static inline CURLcode downpipe_set_seek(CURL *easy, downpipe_seek_callback callback, void *data) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback);
  return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_SEEKDATA, data);
}

// The number of bytes of a request's body.
static inline CURLcode downpipe_set_upload_size(CURL *easy, curl_off_t count) {
  return curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, count);
}

static inline CURLcode downpipe_set_open_socket(CURL *easy, curl_opensocket_callback callback, void *data) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, callback);
  return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, data);
}

// Closes the socket of a connection; `data` lives as long as the connection.
static inline CURLcode downpipe_set_close_socket(CURL *easy, curl_closesocket_callback callback, void *data) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, callback);
  return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, data);
}

// The number of bytes that were sent and that the other side has not acknowledged; negative if that cannot be told.
static inline int downpipe_unacknowledged_bytes(curl_socket_t descriptor) {
  int count = 0;
#ifdef SO_NWRITE
  socklen_t size = sizeof count;
  int result = getsockopt(descriptor, SOL_SOCKET, SO_NWRITE, &count, &size);
#else
  int result = ioctl(descriptor, TIOCOUTQ, &count);
#endif
  return result == 0 ? count : -1;
}

// Lets the next close discard what was not acknowledged, and reset the connection.
static inline void downpipe_discard_on_close(curl_socket_t descriptor) {
  struct linger setting = {1, 0};
  setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &setting, sizeof setting);
}

// Copies the bytes. CURLE_UNKNOWN_OPTION before 7.77.
static inline CURLcode downpipe_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t count) {
#if LIBCURL_VERSION_NUM >= 0x074D00
  struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
  return curl_easy_setopt(easy, option, &blob);
#else
  return CURLE_UNKNOWN_OPTION;
#endif
}

#if LIBCURL_VERSION_NUM >= 0x074D00
static const CURLoption downpipe_cainfo_blob = CURLOPT_CAINFO_BLOB;
static const CURLoption downpipe_sslcert_blob = CURLOPT_SSLCERT_BLOB;
static const CURLoption downpipe_sslkey_blob = CURLOPT_SSLKEY_BLOB;
#else
static const CURLoption downpipe_cainfo_blob = CURLOPT_LASTENTRY;
static const CURLoption downpipe_sslcert_blob = CURLOPT_LASTENTRY;
static const CURLoption downpipe_sslkey_blob = CURLOPT_LASTENTRY;
#endif

typedef int (*downpipe_connected_callback)(void *, char *, char *, int, int);

// Calls back when there is a connection and the request is about to be sent. CURLE_UNKNOWN_OPTION before 7.80.
static inline CURLcode downpipe_set_connected(CURL *easy, downpipe_connected_callback callback, void *data) {
#if LIBCURL_VERSION_NUM >= 0x075000
  CURLcode code = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
  return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_PREREQDATA, data);
#else
  return CURLE_UNKNOWN_OPTION;
#endif
}

// Calls back at least once a second, also while libcurl waits for a server on its own.
static inline CURLcode downpipe_set_progress(CURL *easy, curl_xferinfo_callback callback, void *data) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, callback);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_XFERINFODATA, data);
  return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
}

// Lets a removed handle leave its name look-up behind. CURLE_UNKNOWN_OPTION before 7.87.
static inline CURLcode downpipe_set_quick_exit(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075700
  return curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#else
  return CURLE_UNKNOWN_OPTION;
#endif
}

// The names of the protocols that are allowed, and the same as bits for versions before 7.85.
static inline CURLcode downpipe_set_protocols(CURL *easy, const char *names, long bits) {
#if LIBCURL_VERSION_NUM >= 0x075500
  (void)bits;
  return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, names);
#else
  (void)names;
  return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, bits);
#endif
}

typedef int (*downpipe_key_callback)(CURL *, const struct curl_khkey *, const struct curl_khkey *, enum curl_khmatch, void *);

// Calls back with the result of the search for a host key.
static inline CURLcode downpipe_set_host_key(CURL *easy, downpipe_key_callback callback, void *data) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_SSH_KEYFUNCTION, callback);
  return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_SSH_KEYDATA, data);
}

// MARK: Information about a transfer

static inline long downpipe_get_long(CURL *easy, CURLINFO info) {
  long value = 0;
  return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

static inline curl_off_t downpipe_get_off_t(CURL *easy, CURLINFO info) {
  curl_off_t value = -1;
  return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : -1;
}

// The socket of a transfer that has ended, if its connection is kept.
static inline curl_socket_t downpipe_get_socket(CURL *easy) {
  curl_socket_t value = CURL_SOCKET_BAD;
  return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &value) == CURLE_OK ? value : CURL_SOCKET_BAD;
}

static inline void *downpipe_get_private(CURL *easy) {
  void *value = NULL;
  return curl_easy_getinfo(easy, CURLINFO_PRIVATE, &value) == CURLE_OK ? value : NULL;
}

// MARK: Closure alerts of TLS

// The functions of OpenSSL are found in the process, whose libcurl has brought them: nothing is linked for them.
#ifndef RTLD_DEFAULT
#define RTLD_DEFAULT ((void *)0)
#endif

// Called when the other side has sent `close_notify`: after that no byte is missing (RFC 8446 §6.1).
typedef void (*downpipe_closure_callback)(void *context, const void *connection);

// Lives as long as the connections.
typedef struct {
  downpipe_closure_callback callback;
  void *context;
} downpipe_closure_watch;

// Whether libcurl uses OpenSSL, and the functions found in the process are those of the same version.
static inline int downpipe_has_closure_alerts(void) {
  const curl_version_info_data *info = downpipe_version_info();
  if (!info || !info->ssl_version || strncmp(info->ssl_version, "OpenSSL/", 8) != 0) return 0;
  const char *(*version)(int) = (const char *(*)(int))dlsym(RTLD_DEFAULT, "OpenSSL_version");
  if (!version || !dlsym(RTLD_DEFAULT, "SSL_CTX_set_info_callback") || !dlsym(RTLD_DEFAULT, "SSL_CTX_set_ex_data")
      || !dlsym(RTLD_DEFAULT, "SSL_CTX_get_ex_data") || !dlsym(RTLD_DEFAULT, "SSL_get_SSL_CTX"))
    return 0;
  // “OpenSSL/3.0.15” and “OpenSSL 3.0.15 3 Sep 2024”.
  const char *text = version(0), *number = info->ssl_version + 8;
  return text && strncmp(text, "OpenSSL ", 8) == 0 && strncmp(text + 8, number, strlen(number)) == 0;
}

static inline void downpipe_tls_event(const void *connection, int event, int value) {
  // SSL_CB_READ_ALERT, and the description 0 for close_notify.
  if ((event & 0x4004) != 0x4004 || (value & 0xFF) != 0) return;
  void *(*context_of)(const void *) = (void *(*)(const void *))dlsym(RTLD_DEFAULT, "SSL_get_SSL_CTX");
  void *(*data_of)(const void *, int) = (void *(*)(const void *, int))dlsym(RTLD_DEFAULT, "SSL_CTX_get_ex_data");
  if (!context_of || !data_of) return;
  const downpipe_closure_watch *watch = (const downpipe_closure_watch *)data_of(context_of(connection), 0);
  if (watch) watch->callback(watch->context, connection);
}

// Called by libcurl for each new connection. Index 0 of the data is for applications; libcurl has indices of its own.
static inline CURLcode downpipe_watch_closure(CURL *easy, void *tls_context, void *watch) {
  (void)easy;
  int (*set_data)(void *, int, void *) = (int (*)(void *, int, void *))dlsym(RTLD_DEFAULT, "SSL_CTX_set_ex_data");
  void (*set_callback)(void *, void (*)(const void *, int, int)) =
      (void (*)(void *, void (*)(const void *, int, int)))dlsym(RTLD_DEFAULT, "SSL_CTX_set_info_callback");
  if (set_data && set_callback && set_data(tls_context, 0, watch)) set_callback(tls_context, downpipe_tls_event);
  return CURLE_OK;
}

// Calls back for closure alerts. Only if downpipe_has_closure_alerts().
static inline CURLcode downpipe_set_closure_watch(CURL *easy, downpipe_closure_watch *watch) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, downpipe_watch_closure);
  return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, watch);
}

// The TLS connection of a transfer, from a callback of it; NULL without TLS.
static inline void *downpipe_get_tls_connection(CURL *easy) {
  struct curl_tlssessioninfo *info = NULL;
  return curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info) == CURLE_OK && info ? info->internals : NULL;
}

// MARK: Multi handles

static inline CURLMcode downpipe_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

// MARK: A cookie jar that several threads share

typedef struct {
  CURLSH *share;
  pthread_mutex_t locks[CURL_LOCK_DATA_LAST];
} downpipe_jar;

static inline void downpipe_jar_lock(CURL *easy, curl_lock_data data, curl_lock_access access, void *jar) {
  (void)easy, (void)access;
  pthread_mutex_lock(&((downpipe_jar *)jar)->locks[data]);
}

static inline void downpipe_jar_unlock(CURL *easy, curl_lock_data data, void *jar) {
  (void)easy;
  pthread_mutex_unlock(&((downpipe_jar *)jar)->locks[data]);
}

static inline downpipe_jar *downpipe_jar_create(void) {
  downpipe_jar *jar = calloc(1, sizeof(downpipe_jar));
  if (!jar) return NULL;
  jar->share = curl_share_init();
  if (!jar->share) {
    free(jar);
    return NULL;
  }
  for (int i = 0; i < CURL_LOCK_DATA_LAST; i++) pthread_mutex_init(&jar->locks[i], NULL);
  curl_share_setopt(jar->share, CURLSHOPT_LOCKFUNC, downpipe_jar_lock);
  curl_share_setopt(jar->share, CURLSHOPT_UNLOCKFUNC, downpipe_jar_unlock);
  curl_share_setopt(jar->share, CURLSHOPT_USERDATA, jar);
  curl_share_setopt(jar->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
  curl_share_setopt(jar->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_PSL);
  return jar;
}

static inline void downpipe_jar_destroy(downpipe_jar *jar) {
  curl_share_cleanup(jar->share);
  for (int i = 0; i < CURL_LOCK_DATA_LAST; i++) pthread_mutex_destroy(&jar->locks[i]);
  free(jar);
}

static inline CURLcode downpipe_set_jar(CURL *easy, downpipe_jar *jar) {
  return curl_easy_setopt(easy, CURLOPT_SHARE, jar->share);
}

#endif
