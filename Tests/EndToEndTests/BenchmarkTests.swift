import DownpipeTesting
import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

extension EndToEnd {
  /// The benchmark, with small sizes: that it works, not how fast anything is.
  @Suite struct BenchmarkTests {
    private static func benchmark(_ arguments: [String], path: String? = nil) -> Command {
      let products = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
      return Command(
        products.appending(path: "Benchmark").path, arguments, environment: path.map { ["PATH": $0] } ?? [:])
    }

    @Test(.enabled(if: LongForm.isSelected, "minutes of CPU: .ci/long properties"))
    func everyRowHasAResult() async throws {
      let folder = try TemporaryFolder()
      let names = ["--folder", folder.path("memory"), "--disk-folder", folder.path("disk")]
      let outcome = try await Self.benchmark(
        ["--quick", "--runs", "1", "--allow-missing", "--output", folder.path("output")] + names
      ).run()
      #expect(outcome.status == 0, "\(outcome.output)\n\(outcome.errors)")
      let report = String(decoding: try folder.read("output/results.md"), as: UTF8.self)
      let failed = report.split(separator: "\n").filter { $0.hasPrefix("| Downpipe | no result") }
      #expect(failed.isEmpty, "\(failed)")
      #expect(report.count { $0 == "\n" } > 60, "\(report)")
      #expect(String(decoding: try folder.read("output/chart.svg"), as: UTF8.self).hasSuffix("</svg>\n"))
      try Self.expectEmpty(folder)
    }

    @Test func aMissingServerOrPeerIsNamedWithItsPackage() async throws {
      let folder = try TemporaryFolder()
      let missing = try await Self.benchmark(["--quick", "--nginx", folder.path("nginx")], path: folder.path).run()
      #expect(missing.status == 1)
      for part in ["nginx is missing (package nginx)", "aria2c is missing (package aria2)", "wget2 is missing"] {
        #expect(missing.errors.contains(part), "\(missing.errors)")
      }
      let unavoidable = try await Self.benchmark(
        ["--quick", "--allow-missing", "--nginx", folder.path("nginx")], path: folder.path
      ).run()
      #expect(unavoidable.status == 1)
      #expect(!unavoidable.errors.contains("aria2c"), "\(unavoidable.errors)")
    }

    @Test func aServerThatDoesNotStartIsReported() async throws {
      let folder = try TemporaryFolder()
      let outcome = try await Self.benchmark(
        ["--quick", "--allow-missing", "--rows", "http", "--nginx", "/bin/false", "--folder", folder.path("memory")]
          + ["--disk-folder", folder.path("disk")]
      ).run()
      #expect(outcome.status == 1)
      #expect(outcome.errors.contains("nginx does not start"), "\(outcome.errors)")
      try Self.expectEmpty(folder)
    }

    @Test(arguments: [SIGINT, SIGKILL])
    func nothingRunsAfterASignal(signal: Int32) async throws {
      let folder = try TemporaryFolder()
      // Until the first program has run, when nginx is there.
      let script = """
        "$@" 2>&1 & benchmark=$!
        for i in $(seq \(Command.hangLimit * 10)); do [ -s "$0"/memory/*/bytes.log ] && break; sleep 0.1; done
        nginx=$(cat "$0"/memory/*/nginx.pid); kill -0 $nginx || exit 3
        kill -\(signal) $benchmark; wait $benchmark
        for i in $(seq \(Command.hangLimit * 10)); do kill -0 $nginx 2>/dev/null || exit 0; sleep 0.1; done
        kill $nginx; exit 4
        """
      let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "Benchmark")
      let outcome = try await Command(
        "bash",
        ["-m", "-c", script, folder.path, program.path, "--allow-missing", "--rows", "segments", "--quick"]
          + ["--runs", "1000", "--folder", folder.path("memory"), "--disk-folder", folder.path("disk")]
      ).run()
      #expect(outcome.status == 0, "\(outcome.output)\n\(outcome.errors)")
      if signal == SIGINT { try Self.expectEmpty(folder) }
    }

    /// The temporary folders of the benchmark are gone.
    private static func expectEmpty(_ folder: TemporaryFolder) throws {
      for name in ["memory", "disk"] {
        let rest = (try? FileManager.default.contentsOfDirectory(atPath: folder.path(name))) ?? []
        #expect(rest.isEmpty)
      }
    }
  }
}
