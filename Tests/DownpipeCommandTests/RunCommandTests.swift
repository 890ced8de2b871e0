#if Command && (os(Linux) || os(macOS))
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeCommand

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  @Suite(.endsHangs)
  struct RunCommandTests {
    private let folder: TemporaryFolder
    private let artifact: Artifact

    init() throws {
      folder = try TemporaryFolder()
      artifact = Artifact(location: .path(try folder.write([1], to: "a file")), name: "a file")
    }

    private func context(_ url: String = "https://example.org/x") throws -> ProcessingContext {
      ProcessingContext(request: try DownloadRequest(url, id: "id"), workspace: nil)
    }

    /// A program that the shell runs, with its arguments after it.
    private func script(_ text: String, _ arguments: RunCommand.Argument...) -> [RunCommand.Argument] {
      [RunCommand.Argument("-c"), RunCommand.Argument(text), "script"] + arguments
    }

    private func failure(_ step: RunCommand, _ artifact: Artifact? = nil) async throws -> DownloadError {
      do {
        _ = try await step.process(artifact ?? self.artifact, in: context())
      } catch let error as DownloadError {
        return error
      }
      throw Deviation("the step did not fail")
    }

    private func lines(_ name: String) throws -> [String] {
      String(decoding: try folder.read(name), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Waits until a program has written a file that ends with a line break.
    private func text(of name: String) async -> String {
      while true {
        if let bytes = try? folder.read(name), bytes.last == 10 {
          return String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines)
        }
        await Task.yield()
      }
    }

    /// Waits until a process has ended. Killed processes whose parent has ended are reaped by the system.
    private func end(of process: String) async throws {
      let id = try #require(pid_t(process))
      while kill(id, 0) == 0 {
        // A process without a parent that reaps it stays in the table.
        if let text = try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8), text.contains(") Z ") { return }
        await Task.yield()
      }
    }

    // MARK: Arguments and surroundings

    @Test func argumentsAreValues() async throws {
      let step = RunCommand(
        "/bin/sh",
        arguments: script("printf '%s\\n' \"$@\" > out", .path, .name, .url, "$(touch evil); `x` \"'", "", "--x"),
        workingDirectory: folder.path)
      let output = try await step.process(artifact, in: context("https://user:pw@Example.org/x y?sig=1#f"))
      #expect(output == artifact)
      let text = String(decoding: try folder.read("out"), as: UTF8.self)
      #expect(
        text == """
          \(folder.path)/a file
          a file
          https://example.org/x%20y
          $(touch evil); `x` "'

          --x

          """)
      #expect(try folder.contents() == ["a file", "out"])
    }

    @Test("a name that a server has chosen adds no option", arguments: ["-rf", "--output=/etc/passwd"])
    func names(_ name: String) async throws {
      var artifact = artifact
      artifact.name = name
      let step = RunCommand(
        "/bin/sh", arguments: script("echo \"$1\" > out", .name), workingDirectory: folder.path)
      _ = try await step.process(artifact, in: context())
      #expect(try lines("out") == ["./" + name])
    }

    @Test func theProgramIsLookedUp() async throws {
      let step = RunCommand("sh", arguments: script("pwd > \"$1\"", .init("\(folder.path)/out")), workingDirectory: "/")
      _ = try await step.process(artifact, in: context())
      #expect(try lines("out") == ["/"])
    }

    @Test func environments() async throws {
      setenv("DOWNPIPE_COMMAND_TEST", "inherited", 1)
      for (environment, expected) in [
        (RunCommand.Environment.inherited, "inherited,"), (.inherited(with: ["A": "b c"]), "inherited,b c"),
        (.only(["A": "x"]), ",x"), (.only([:]), ","),
      ] {
        let step = RunCommand(
          "/bin/sh", arguments: script("echo \"$DOWNPIPE_COMMAND_TEST,$A\" > out"), workingDirectory: folder.path,
          environment: environment)
        _ = try await step.process(artifact, in: context())
        #expect(try lines("out") == [expected])
      }
    }

    @Test("the program gets no file of this process but the three standard ones, and no input")
    func descriptors() async throws {
      let open = try #require(FileHandle(forReadingAtPath: folder.path("a file")))
      defer { try? open.close() }
      // Inherited by programs unless it is closed on purpose.
      let leaking = dup(open.fileDescriptor)
      defer { close(leaking) }
      #expect(fcntl(leaking, F_GETFD) & FD_CLOEXEC == 0)
      let step = RunCommand(
        "/bin/sh",
        arguments: script(
          "for n in 3 4 5 6 7 8 9 \(leaking); do if [ -e /dev/fd/$n ] && readlink /dev/fd/$n | grep -q 'a file'; then echo open; fi; done > out; cat >> out; echo end >> out"
        ),
        workingDirectory: folder.path)
      _ = try await step.process(artifact, in: context())
      #expect(try lines("out") == ["end"])
    }

    // MARK: Endings

    @Test func statusAndOutputAreReported() async throws {
      let error = try await failure(
        RunCommand("/bin/sh", arguments: script("echo first; echo second >&2; exit 7")))
      #expect(error.code == .processing && error.stage == "RunCommand")
      #expect(error.message == "/bin/sh ended with the status 7; its output ends with “first second”")
    }

    @Test func outputIsEscaped() async throws {
      let error = try await failure(
        RunCommand(
          "/bin/sh", arguments: script("printf 'a\\033[31m\\000\\n\\t\\377 https://u:p@h/?k=secret'; exit 1")))
      #expect(
        error.message
          == "/bin/sh ended with the status 1; its output ends with “a\\u{1b}[31m\\u{0} \u{FFFD} https://…@h/?k=…”")
    }

    @Test("of a long output the end is kept")
    func longOutput() async throws {
      let error = try await failure(
        RunCommand("/bin/sh", arguments: script("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 1")))
      #expect(error.message.hasSuffix("xxx the end”") && error.message.count < 1200)
      #expect(error.message.contains("“…x"))
    }

    @Test func keptBytesAreBounded() {
      var output = LastOutput(limit: 10)
      for start in stride(from: UInt8(0), to: 200, by: 7) {
        Array(start..<start + 7).withUnsafeBytes { output.append($0) }
        #expect(output.kept.count <= 10 && output.kept.last == start + 6)
      }
      Array(UInt8(0)...100).withUnsafeBytes { output.append($0) }
      #expect(Array(output.kept) == Array(91...100))
      #expect(LastOutput(limit: 10).shown == " and printed nothing")
    }

    @Test func signalsAreReported() async throws {
      let error = try await failure(RunCommand("/bin/sh", arguments: script("kill -9 $$")))
      #expect(error.message == "/bin/sh was ended by the signal 9 and printed nothing")
    }

    @Test(arguments: ["/nowhere/tool", "downpipe-no-such-tool"])
    func missingPrograms(_ program: String) async throws {
      let error = try await failure(RunCommand(program))
      #expect(error.code == .processing && error.message.contains(program) && error.stage == "RunCommand")
    }

    @Test func missingFolders() async throws {
      let error = try await failure(RunCommand("/bin/sh", workingDirectory: folder.path("none")))
      #expect(error.code == .processing && error.message.contains("/bin/sh could not be run"))
    }

    @Test func impossibleArguments() async throws {
      let memory = Artifact(location: .memory([1]), name: "x")
      #expect(try await failure(RunCommand("/bin/sh"), memory).message.contains("memory"))
      #expect(try await failure(RunCommand("/bin/sh", arguments: ["a\u{0}b"])).message.contains("NUL"))
      let context = try context()
      #expect(try await RunCommand("/bin/sh", arguments: ["-c", "true"]).process(memory, in: context) == memory)
    }

    @Test("at the time limit the program and its descendants get SIGTERM")
    func timeLimit() async throws {
      let time = VirtualTime()
      let step = RunCommand(
        "/bin/sh",
        arguments: script("trap 'echo term > ended; exit 3' TERM; sleep 1000 & echo $! > child; wait"),
        workingDirectory: folder.path, timeLimit: .seconds(90), time: time, grace: .seconds(1000))
      async let error = failure(step)
      let child = await text(of: "child")
      await time.sleeper(dueIn: .seconds(90))
      time.advance(by: .seconds(90))
      #expect(try await error.code == .processing)
      #expect(try await error.message.contains("more than 90 seconds"))
      #expect(try lines("ended") == ["term"])
      try await end(of: child)
    }

    @Test("a program that ignores SIGTERM is killed with its descendants")
    func killing() async throws {
      let time = VirtualTime()
      let step = RunCommand(
        "/bin/sh",
        arguments: script("trap '' TERM; sleep 1000 & echo $! > child; while :; do sleep 1000; done"),
        workingDirectory: folder.path, timeLimit: .seconds(1), time: time, grace: .milliseconds(1))
      async let error = failure(step)
      let child = await text(of: "child")
      await time.sleeper(dueIn: .seconds(1))
      time.advance(by: .seconds(1))
      #expect(try await error.code == .processing)
      try await end(of: child)
    }

    @Test func cancelling() async throws {
      let step = RunCommand(
        "/bin/sh", arguments: script("echo $$ > child; sleep 1000"), workingDirectory: folder.path)
      let (artifact, context) = (artifact, try context())
      let task = Task { try await step.process(artifact, in: context) }
      let child = await text(of: "child")
      task.cancel()
      await #expect(throws: CancellationError.self) { _ = try await task.value }
      try await end(of: child)
    }

    @Test("a program that is left running with the output open is not waited for")
    func background() async throws {
      let step = RunCommand(
        "/bin/sh", arguments: script("sleep 1000 & echo $! > child"), workingDirectory: folder.path)
      _ = try await step.process(artifact, in: context())
      let child = try #require(pid_t(await text(of: "child")))
      #expect(kill(child, SIGKILL) == 0)
    }

    // MARK: The contract

    @Test func summaries() {
      #expect(RunCommand("/usr/bin/tool").summary == "/usr/bin/tool <path>, at most 600 seconds")
      let step = RunCommand(
        "/usr/bin/tool", arguments: [.name, .url, "--x"], workingDirectory: "/tmp",
        environment: .only(["B": "secret", "A": "secret"]), timeLimit: .seconds(5))
      #expect(
        step.summary == "/usr/bin/tool <name> <url> --x, in /tmp, only A, B in the environment, at most 5 seconds")
    }

    @Test func conforms() async throws {
      try await PostProcessorConformance(
        RunCommand("/bin/sh", arguments: script("grep -q good \"$1\"", .path)),
        .init(Array("good".utf8), named: "a.txt", named: "a.txt"),
        and: .init(Array("good, too".utf8), named: "b.txt", named: "b.txt"), bad: .init(Array("bad".utf8))
      ).run()
    }
  }
#endif
