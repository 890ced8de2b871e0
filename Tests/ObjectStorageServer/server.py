"""An object storage with the protocol of S3, in a folder that exists: OpenStack Swift with its s3api. Prints "ready PORT", and
runs until its input ends; then it removes the folder. All four servers, each a process, are in Debian's python3-swift; the
packages swift-proxy, swift-object and so on only add services of the system."""
import ctypes, logging, os, shutil, signal, socket, sys

folder = sys.argv[1]
os.dup2(os.open(f"{folder}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)

import eventlet
from swift.common import constraints, storage_policy, utils, wsgi
from swift.common.ring import RingBuilder

# Objects keep their metadata in user attributes of files: fails here instead of at the first request.
try:
  os.setxattr(folder, "user.downpipe", b"")
except OSError as error:
  sys.exit(f"Swift needs user attributes of files, which the file system does not have: {error}")


class NoCache:
  """Forgets everything. Swift's tempauth insists on a memcached, which S3 requests do not need."""

  def __getattr__(self, name):
    return lambda *words, **options: None


def cache(configuration, **_):
  def wrap(application):
    def answer(environment, start):
      environment["swift.cache"] = NoCache()
      return application(environment, start)
    return answer
  return wrap


def write(name, text):
  with open(f"{folder}/{name}.conf", "w") as file:
    file.write(text)


write("swift", "[swift-hash]\nswift_hash_path_prefix = downpipe\n")
# The servers wait for each other for minutes: after a second, the default, a machine with much to do would leave
# objects out of lists.
defaults = f"""
[DEFAULT]
swift_dir = {folder}
devices = {folder}
mount_check = false
disable_fallocate = true
conn_timeout = 300
node_timeout = 300
client_timeout = 300
container_update_timeout = 300
"""
write("proxy", defaults + """
[pipeline:main]
pipeline = catch_errors gatekeeper proxy-logging cache listing_formats s3api tempauth bulk slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
error_suppression_interval = 0
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:proxy-logging]
use = egg:swift#proxy_logging
[filter:cache]
paste.filter_factory = __main__:cache
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
s3_acl = false
min_segment_size = 5242880
max_upload_part_num = 10000
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
user_test_guest = guesting
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
max_manifest_segments = 10000
""")
for name in "account", "container", "object":
  write(name, defaults + f"""
log_level = WARNING
[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{name}
log_requests = false
""")

# Nothing has to survive a crash of the machine.
os.fsync = os.fdatasync = lambda descriptor: None
utils.ThreadSafeSysLogHandler = lambda **_: logging.StreamHandler(sys.stderr)
# Instead of /etc/swift.
utils.set_swift_dir(folder)
constraints.reload_constraints()
storage_policy.reload_storage_policies()
utils.disable_fallocate()
plain = eventlet.patcher.original("socket")
utils.eventlet_monkey_patch()

names = ["account", "container", "object", "proxy"]
addresses = {name: ("127.0.0.1", 0) for name in names}
listeners, servers = {}, {}
# Keeps the port of the proxy while it is stopped.
reservation = plain.socket()
reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
reservation.bind(addresses["proxy"])
addresses["proxy"] = reservation.getsockname()


def listen(name):
  listener = eventlet.listen(addresses[name], backlog=1024)
  listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
  addresses[name] = listener.getsockname()
  return listener


def start(name, listener):
  parent = os.getpid()
  child = os.fork()
  if child == 0:
    try:
      # 1 is PR_SET_PDEATHSIG: the servers end with this process, also if that is killed.
      ctypes.CDLL(None).prctl(1, signal.SIGKILL)
      if os.getppid() != parent:
        os._exit(1)
      os.dup2(os.open("/dev/null", os.O_RDWR), 0)
      os.dup2(2, 1)
      for other in listeners.values():
        other.close()
      configuration = wsgi.appconfig(f"{folder}/{name}.conf", name=f"{name}-server")
      wsgi.run_server(configuration, utils.get_logger(configuration, name, log_route="wsgi"), listener)
    except BaseException:
      sys.excepthook(*sys.exc_info())
    os._exit(1)
  listener.close()
  servers[name] = child


def stop(name):
  child = servers.pop(name, None)
  if child:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def wait(name):
  """Returns when the server has answered a request, also with an error; fails if it has ended."""
  with plain.create_connection(addresses[name]) as connection:
    connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
    if not connection.recv(1):
      raise RuntimeError(f"{name}-server does not answer")


try:
  for name in names:
    listeners[name] = listen(name)
  os.mkdir(f"{folder}/disk")
  for name in names[:-1]:
    ring = RingBuilder(4, 1, 0)
    ring.add_dev(dict(region=1, zone=1, ip="127.0.0.1", port=addresses[name][1], device="disk", weight=1))
    ring.rebalance()
    ring.get_ring().save(f"{folder}/{name}.ring.gz")
  for name in names:
    # Once for all: imports take a second.
    wsgi.loadapp(f"{folder}/{name}.conf", global_conf={"log_name": name})
  for name in names:
    start(name, listeners.pop(name))
  for name in names:
    wait(name)
  print("ready", addresses["proxy"][1], flush=True)
  for command in sys.stdin:
    stop("proxy")
    if command.strip() == "start":
      start("proxy", listen("proxy"))
      wait("proxy")
    print("done", flush=True)
except (KeyboardInterrupt, BrokenPipeError):
  pass
finally:
  for name in list(servers):
    stop(name)
shutil.rmtree(folder, ignore_errors=True)

