import ArgumentParser

/// Measures Downpipe on this machine, beside other programs: swift run -c release Benchmark
@main
struct Benchmark: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Benchmark", abstract: "Measure Downpipe on this machine. Build it with -c release.",
    subcommands: [CompareCommand.self, QueueBenchmark.self, FleetBenchmark.self, UnpackCommand.self],
    defaultSubcommand: CompareCommand.self)
}
