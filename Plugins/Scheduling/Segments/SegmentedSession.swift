import DownpipeCore
import Synchronization

/// The connections of one transfer: what ``ConnectionSearch`` finds to pay, as far as servers accept it.
final class SegmentedSession: SegmentSession {
  private struct State {
    var ceiling: ConnectionCeiling
    /// `nil` for a fixed number.
    var search: ConnectionSearch?
    var wanted: Int
  }

  let maximumConnections: Int
  private let state: Mutex<State>

  init(_ connections: Segmented.Connections) {
    let maximum = connections.maximum
    maximumConnections = maximum
    state = Mutex(
      State(
        ceiling: ConnectionCeiling(maximum: maximum),
        search: connections.isAutomatic ? ConnectionSearch(maximum: maximum) : nil,
        wanted: connections.isAutomatic ? 1 : maximum))
  }

  func connections(after measurement: SegmentMeasurement) -> Int {
    state.withLock { state in
      let isLower = state.ceiling.update(after: measurement, wanted: state.wanted)
      if isLower { state.search?.lower(to: state.ceiling.value) }
      let wanted = state.search?.connections(after: measurement) ?? maximumConnections
      state.wanted = min(wanted, state.ceiling.value)
      return state.wanted
    }
  }
}
