import ArgumentParser

/// Measures Downpipe on this machine: swift run -c release Benchmark queue
@main
struct Benchmark: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Benchmark", abstract: "Measure Downpipe on this machine. Build it with -c release.",
    subcommands: [QueueBenchmark.self])
}
