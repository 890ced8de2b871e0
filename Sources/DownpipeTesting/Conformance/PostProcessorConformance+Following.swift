import DownpipeCore

extension PostProcessorConformance {
  func checkFollower(_ step: PipelineStep, _ report: ConformanceReport) async {
    let examples = examples
    let bad = bad
    await report.check(
      "follower-changes-nothing", "a step whose follower has taken the input gives the same output, or refuses it too",
      needs: ["gives-what-is-expected"]
    ) {
      for example in examples {
        let bench = try Workbench(example)
        guard let follower = try bench.follow(step) else { return }
        try example.verify(try await bench.process(step, follower: follower))
      }
      guard let bad else { return }
      let bench = try Workbench(bad)
      // A follower may refuse the bytes, too: the step then reads them.
      guard let follower = try? bench.follow(step) else { return }
      try await expectAnyError(when: "processing a bad input with a follower") {
        _ = try await bench.process(step, follower: follower)
      }
    }
  }

  /// A wrapper that does not forward an optional method uses its default, which the compiler does not report.
  func checkWrapping(_ step: PipelineStep, _ base: PipelineStep?, _ report: ConformanceReport) async {
    let examples = examples
    await report.check(
      "wrapper-loses-nothing", "a wrapper has all abilities of the step that it wraps", when: base != nil
    ) {
      guard let base else { return }
      for example in examples {
        let context = try Workbench(example).context(workspace: nil)
        try expectEqual(step.isNeeded(context), base.isNeeded(context), "isNeeded(in:)")
        let (own, wrapped) = (step.follower(context), base.follower(context))
        try expectEqual(own == nil ? "nil" : "a follower", wrapped == nil ? "nil" : "a follower", "follower(in:)")
      }
    }
  }
}
