// Runs a program and writes what it used into a file: BenchmarkLauncher FILE PROGRAM ARGUMENT…
//
// It is a program of its own, in C, because Linux counts the peak memory of a process from before its exec: a program
// that a large process starts seems to have been as large as that process.
//
// Standard input is a pipe of the benchmark. However the benchmark ends, all processes of this group end.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long long microseconds(struct timeval time) { return time.tv_sec * 1000000LL + time.tv_usec; }

static void end_with_benchmark(void) {
  char byte;
  ssize_t count;
  do count = read(0, &byte, 1);
  while (count > 0 || (count < 0 && errno == EINTR));
  kill(0, SIGKILL);
}

static void become(char **arguments) {
  // The program must not read what the benchmark writes, nor hold its pipe.
  int empty = open("/dev/null", O_RDONLY);
  if (empty >= 0) dup2(empty, 0);
  // Only here: Foundation takes a launcher that closes its descriptors for one that has ended.
  for (int descriptor = 3; descriptor < 1024; descriptor++) close(descriptor);
  execvp(arguments[0], arguments);
  perror(arguments[0]);
  _exit(127);
}

int main(int count, char **arguments) {
  if (count < 3) {
    fprintf(stderr, "usage: BenchmarkLauncher FILE PROGRAM [ARGUMENT]...\n");
    return 125;
  }
  setpgid(0, 0);
  pid_t guard = fork();
  if (guard == 0) {
    end_with_benchmark();
    _exit(0);
  }
  long long start = nanoseconds();
  pid_t program = fork();
  if (program == 0) become(arguments + 2);
  if (guard < 0 || program < 0) {
    perror("fork");
    kill(0, SIGKILL);
  }
  int status = 0;
  struct rusage use;
  while (wait4(program, &status, 0, &use) < 0) {
    if (errno != EINTR) return 125;
  }
  long long wall = nanoseconds() - start;
  kill(guard, SIGKILL);
  waitpid(guard, NULL, 0);

  FILE *file = fopen(arguments[1], "w");
  if (file == NULL) {
    perror(arguments[1]);
    return 125;
  }
  int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
#ifdef __APPLE__
  long long peak = use.ru_maxrss;
#else
  long long peak = use.ru_maxrss * 1024LL;
#endif
  fprintf(
      file, "%d %lld %lld %lld %lld\n", code, start, wall, microseconds(use.ru_utime) + microseconds(use.ru_stime), peak);
  return fclose(file) == 0 ? 0 : 125;
}
