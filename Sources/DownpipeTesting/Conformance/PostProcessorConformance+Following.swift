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
        for chunks in Workbench.Chunks.allCases {
          let bench = try Workbench(example)
          guard try bench.isFollowed(by: step) else { return }
          let follower = try bench.follow(step, in: chunks)
          defer { follower?.discard() }
          try example.verify(try await bench.process(step, follower: follower))
        }
      }
      guard let bad else { return }
      let bench = try Workbench(bad)
      let follower = try bench.follow(step)
      defer { follower?.discard() }
      try await expectAnyError(when: "processing a bad input with a follower") {
        _ = try await bench.process(step, follower: follower)
      }
    }
    await checkDiscarding(step, report)
    await report.check(
      "killed-follower-is-replaced", "what a follower has left in a process that was killed does no harm",
      needs: ["discarded-follower-leaves-nothing"]
    ) {
      let killed = try Workbench(examples[0])
      guard try killed.isFollowed(by: step) else { return }
      let first = try killed.follow(step)
      defer { first?.discard() }
      for isFollowed in [true, false] {
        let bench = try Workbench(examples[0])
        try bench.takeOver(killed)
        let second = isFollowed ? try bench.follow(step) : nil
        defer { second?.discard() }
        try examples[0].verify(try await bench.process(step, follower: second))
      }
    }
  }

  private func checkDiscarding(_ step: PipelineStep, _ report: ConformanceReport) async {
    let inputs = examples + (bad.map { [$0] } ?? [])
    let examples = examples
    await report.check(
      "discarded-follower-leaves-nothing", "a follower that was discarded leaves nothing, and the step can still run",
      needs: ["follower-changes-nothing"]
    ) {
      for input in inputs {
        for half in [true, false] {
          let bench = try Workbench(input)
          guard try bench.isFollowed(by: step) else { return }
          let follower = try bench.follow(step, half: half)
          follower?.discard()
          follower?.discard()
          try expect(bench.written.isEmpty, "it has left \(bench.written)")
        }
      }
      // The transfer starts again.
      for example in examples {
        let bench = try Workbench(example)
        try bench.follow(step, half: true)?.discard()
        let second = try bench.follow(step)
        defer { second?.discard() }
        try example.verify(try await bench.process(step, follower: second))
      }
    }
    await report.check(
      "discarding-keeps-the-output", "the output stays when the follower is discarded after the step",
      needs: ["follower-changes-nothing"]
    ) {
      let bench = try Workbench(examples[0])
      guard try bench.isFollowed(by: step) else { return }
      let follower = try bench.follow(step)
      let output = try await bench.process(step, follower: follower)
      follower?.discard()
      try examples[0].verify(output)
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
        try expectEqual(step.followerWrites, base.followerWrites, "followerWrites")
        let bench = try Workbench(example)
        let (own, wrapped) = (try bench.follower(of: step), try bench.follower(of: base))
        defer {
          own?.discard()
          wrapped?.discard()
        }
        try expectEqual(own == nil ? "nil" : "a follower", wrapped == nil ? "nil" : "a follower", "follower(in:)")
      }
    }
  }
}
