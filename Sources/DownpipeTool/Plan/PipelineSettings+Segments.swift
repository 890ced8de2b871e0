import Downpipe

extension PipelineSettings {
  /// The stage for several connections to one file; `nil` for a single one.
  var segmented: Segmented? {
    switch connections {
    case nil: Segmented(connections: .automatic(upTo: Segmented.most))
    case 1?: nil
    // Segments that were asked for are used for smaller files too.
    case let count?: Segmented(connections: .exactly(count), minimumSize: 1 << 20)
    }
  }

  /// The most connections to one host. Without options, several large files of a host share as many as there may be
  /// downloads at once; a number of connections that was asked for holds for each file.
  var connectionsPerHost: Int? { perHost ?? (connections == nil ? max(jobs, Segmented.most) : nil) }
}

extension Segmented {
  /// The most connections to one file that a command opens without being asked.
  static let most = 4
}
