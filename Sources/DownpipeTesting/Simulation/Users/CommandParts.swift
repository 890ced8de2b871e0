public import DownpipeCore

extension SimulatedCommand {
  /// A stage that users replace.
  public enum ReplacedStage: String, Sendable, Hashable, CaseIterable {
    /// The scheduling policy: by arrival.
    case scheduling
    /// The retry policy.
    case retry
    /// The source.
    case source
    /// The gate.
    case gate
    /// A rate policy, which is added at first.
    case rate
    /// The segment policy.
    case segments
  }

  /// A stage that users remove.
  public enum RemovedStage: String, Sendable, Hashable, CaseIterable {
    /// The gate: nothing holds downloads back.
    case gate
    /// The limits: five downloads run at once.
    case limits
    /// The rate policy.
    case rate
  }

  /// What happens to several downloads in one transaction.
  public enum BulkOperation: String, Sendable, Hashable, CaseIterable {
    /// They are paused.
    case pause
    /// Those that are paused or have failed are resumed.
    case resume
    /// Those that were paused together are resumed.
    case resumeTogether
    /// They are restarted.
    case restart
    /// Finished ones are asked for changes.
    case refresh
    /// They are cancelled.
    case cancel
    /// They are removed, with their files.
    case remove
    /// They get a high priority.
    case prioritize
  }

  /// Which downloads a command for several ones concerns.
  public enum BulkSelection: Sendable, Hashable, CustomStringConvertible {
    /// The downloads with these numbers.
    case numbers([Int])
    /// The downloads with an even number, or those with an odd one. Each request has the tag `t0` or `t1`.
    case tag(isOdd: Bool)
    /// The downloads in a phase.
    case phase(DownloadState.Phase)
    /// The downloads from the server with a number; larger numbers begin again.
    case host(Int)

    /// The selection as Swift source.
    public var description: String {
      switch self {
      case .numbers(let numbers): ".numbers(\(numbers))"
      case .tag(let isOdd): ".tag(isOdd: \(isOdd))"
      case .phase(let phase): ".phase(.\(phase.rawValue))"
      case .host(let number): ".host(\(number))"
      }
    }
  }

  /// A change of a request that does not ask for another file.
  public enum RequestChange: String, Sendable, Hashable, CaseIterable {
    /// Another name of the file.
    case destination
    /// The download does not wait for others any more.
    case independent
    /// Copies of the file are mirrors, or are not any more.
    case mirrors
    /// Over several connections, or over one.
    case segments
    /// The size of the present version is expected.
    case size
    /// A setting of steps.
    case stepSetting
  }
}
