import DownpipeCore
import DownpipeServer
import Synchronization

/// Sends notifications to the sockets whose token was right.
final class Notifier: Sendable {
  private let sockets = Mutex<[ObjectIdentifier: ServerSocket]>([:])
  private let gids: GIDIndex
  private let lists: ListCache

  init(_ gids: GIDIndex, _ lists: ListCache) {
    self.gids = gids
    self.lists = lists
  }

  /// How many sockets there are.
  var count: Int { sockets.withLock { $0.count } }

  func add(_ socket: ServerSocket) { sockets.withLock { $0[ObjectIdentifier(socket)] = socket } }

  func remove(_ socket: ServerSocket) { sockets.withLock { $0[ObjectIdentifier(socket)] = nil } }

  /// Follows the downloads until the downloader ends or the task is cancelled.
  func run(_ events: AsyncStream<DownloadEvent>) async {
    var notes = DownloadNotes()
    for await event in events {
      // Before a client is told: it may ask for the lists at once.
      lists.receive(event)
      switch event.kind {
      case .state(let state): for note in notes.receive(state, of: event.id) { send(note, event.id) }
      case .removed: for note in notes.receiveRemoval(of: event.id) { send(note, event.id) }
      default: break
      }
    }
  }

  private func send(_ note: DownloadNotes.Note, _ id: DownloadID) {
    let sockets = sockets.withLock { Array($0.values) }
    guard !sockets.isEmpty else { return }
    let message: JSONValue = [
      "jsonrpc": "2.0", "method": .string(note.rawValue), "params": [["gid": .string(gids.gid(of: id).text)]],
    ]
    let bytes = message.bytes
    for socket in sockets { socket.post(bytes) }
  }
}
