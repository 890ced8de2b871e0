#if LIBCURL
  import CCurl
  import DownpipeCore
  import Foundation
  import Synchronization

  /// What runs on a ``CurlThread``: waits for sockets, times and commands, and lets libcurl work.
  ///
  /// Names are looked up on libcurl's threads. The one thing that a thread waits for is a sink: that is the back-pressure,
  /// which costs nothing and needs no memory. A sink that waits for its disk therefore holds up the other transfers of its
  /// thread. The downloads of a downloader write to one storage, so they would wait for the same disk; and a transfer that
  /// handed its chunks to a thread of its own would pay a copy and a task hop for each.
  final class CurlLoop {
    /// A thread without transfers closes its idle connections after this time.
    private static let idleTime = Duration.seconds(60)
    /// Handles that are kept for the next transfer: each has its buffers.
    private static let keptHandles = 16

    private let thread: CurlThread
    let settings: CurlSettings
    let connections: IdleConnections
    var sockets: OpenSockets { thread.sockets }
    let block = ChunkBlock()
    private(set) lazy var closures = ClosureWatch(self)
    private var multi: UnsafeMutableRawPointer?
    private var transfers: [Order.ID: CurlTransfer] = [:]
    private var handles: [EasyHandle] = []
    private var alarms = MinHeap<Alarm>()
    /// Transfers whose heads wait for their bodies, the oldest first.
    private var waitingHeads: [WaitingHead] = []
    /// Transfers that were interrupted for the sake of commands.
    private var interrupted: [Order.ID] = []
    private var stopping: [CheckedContinuation<Void, Never>] = []
    private var isStopping = false
    /// Whether there may be idle connections.
    private var hasConnections = false
    private var nextWatch: ContinuousClock.Instant
    /// The start of the present turn of the loop.
    private(set) var now = ContinuousClock.now

    /// The instant at which a transfer that was too fast goes on.
    private struct Alarm: Comparable {
      var instant: ContinuousClock.Instant
      var id: Order.ID
      static func < (left: Self, right: Self) -> Bool { left.instant < right.instant }
    }

    private struct WaitingHead {
      var id: Order.ID
      var since: ContinuousClock.Instant
    }

    /// How long a head waits for its body while other transfers are busy.
    private static let headTime = Duration.milliseconds(10)

    init(_ thread: CurlThread, _ settings: CurlSettings) {
      self.thread = thread
      self.settings = settings
      connections = IdleConnections(thread.sockets)
      nextWatch = now
    }

    func run() {
      CurlLibrary.blockBrokenPipeSignal()
      var idleSince = now
      var commands: [CurlThread.Command] = []
      while !isStopping {
        guard let multi = multi ?? makeMulti() else {
          for command in thread.waitForCommands() { refuse(command) }
          continue
        }
        thread.takeCommands(into: &commands)
        for command in commands { perform(command) }
        commands.removeAll(keepingCapacity: true)
        continueInterrupted()
        var running: Int32 = 0
        curl_multi_perform(multi, &running)
        finishDone(multi)
        soundAlarms()
        pushCollected()
        watchTimes()
        if !transfers.isEmpty { idleSince = now }
        if hasConnections, now - idleSince > Self.idleTime {
          closeConnections()
          continue
        }
        // Most bodies have come by now.
        if !waitingHeads.isEmpty { waitingHeads.removeAll { transfers[$0.id]?.awaitsBody != true } }
        // Without a wait there is nothing to ask the system for: libcurl looks at the sockets itself, one by one.
        var ready: Int32 = 0
        if !waitingHeads.isEmpty {
          curl_multi_poll(multi, nil, 0, 0, &ready)
        } else if !isStopping, interrupted.isEmpty, thread.mayWait() {
          curl_multi_poll(multi, nil, 0, pollTime(idleSince), nil)
        }
        now = .now
        // Nothing more has arrived for them: they wait no longer.
        if !waitingHeads.isEmpty { deliverHeads(all: ready == 0) }
      }
      end()
    }

    // MARK: Commands

    private func perform(_ command: CurlThread.Command) {
      switch command {
      case .start(let order, let continuation): start(order, continuation)
      case .read(let id, let reader):
        guard let transfer = transfers[id] else {
          return reader.continuation.resume(throwing: PendingResponse.readTwice)
        }
        transfer.read(reader)
        collect(transfer)
      case .drain(let id, let continuation):
        guard let transfer = transfers[id] else { return continuation.resume() }
        transfer.drain(continuation)
        collect(transfer)
      case .discard(let id):
        guard let transfer = transfers[id] else { return }
        transfer.discard()
        collect(transfer)
      case .cancel(let id, let reason):
        guard let transfer = transfers[id] else { return }
        transfer.end(reason)
        collect(transfer)
      case .stop(let continuation):
        isStopping = true
        if let continuation { stopping.append(continuation) }
      }
    }

    private func start(_ order: Order, _ continuation: CheckedContinuation<ResponseHead, any Error>) {
      guard let multi, let handle = handles.popLast() ?? EasyHandle() else {
        return continuation.resume(throwing: CurlLibrary.outOfMemory)
      }
      let transfer = CurlTransfer(order, handle, self, continuation)
      transfers[order.id] = transfer
      if transfer.handler.waitsWithinCalls { sockets.begin(order.id) }
      hasConnections = true
      thread.load.add(1, ordering: .relaxed)
      do {
        try transfer.prepare()
        let code = curl_multi_add_handle(multi, handle.pointer)
        guard code == CURLM_OK else { throw CurlLibrary.failure(code) }
        transfer.isAdded = true
      } catch {
        transfer.end(error)
        collect(transfer)
      }
    }

    // MARK: Transfers

    var receiveBufferBytes: Int { ReceiveBuffer.bytes(ofTransfers: transfers.count) }

    /// Ends what libcurl has finished.
    private func finishDone(_ multi: UnsafeMutableRawPointer) {
      var left: Int32 = 0
      while let message = curl_multi_info_read(multi, &left) {
        guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
          let address = downpipe_get_private(easy)
        else { continue }
        // The message is invalid once the handle is removed.
        let code = message.pointee.data.result
        let transfer = Unmanaged<CurlTransfer>.fromOpaque(address).takeUnretainedValue()
        if transfer.needsNewConnection {
          curl_multi_remove_handle(multi, easy)
          transfer.retryOverNewConnection()
          let added = curl_multi_add_handle(multi, easy)
          if added == CURLM_OK { continue }
          transfer.isAdded = false
          transfer.end(CurlLibrary.failure(added))
          collect(transfer)
          continue
        }
        transfer.finish(code)
        collect(transfer)
      }
    }

    /// Gives the handle of a transfer back when libcurl has finished with it, and forgets a transfer that is over.
    private func collect(_ transfer: CurlTransfer) {
      if transfer.isDone, let handle = transfer.handle {
        if transfer.isAdded, let multi { curl_multi_remove_handle(multi, handle.pointer) }
        transfer.handle = nil
        if CurlLibrary.reusesHandles, handles.count < Self.keptHandles, transfer.leavesCleanHandle {
          handle.reset()
          handles.append(handle)
        } else {
          handle.destroy()
        }
        if transfer.handler.waitsWithinCalls { sockets.end(transfer.order.id) }
      }
      if transfer.isOver, transfers.removeValue(forKey: transfer.order.id) != nil {
        thread.load.subtract(1, ordering: .relaxed)
      }
    }

    /// The server has sent the closure alert of TLS on a connection.
    func closureAlert(on connection: UnsafeRawPointer) {
      for transfer in transfers.values where transfer.tlsConnection == connection { transfer.hasClosureAlert = true }
    }

    /// A head waits for a short body, which is on its way.
    func awaitBody(of id: Order.ID) { waitingHeads.append(WaitingHead(id: id, since: now)) }

    /// Delivers the heads that have waited long enough.
    private func deliverHeads(all: Bool) {
      let end =
        all ? waitingHeads.count : waitingHeads.firstIndex { now - $0.since < Self.headTime } ?? waitingHeads.count
      for head in waitingHeads[..<end] { transfers[head.id]?.deliverHead() }
      waitingHeads.removeFirst(end)
    }

    /// Whether other threads wait for the thread.
    var hasCommands: Bool { thread.hasCommands }

    /// Whether a transfer should wait for the next turn: libcurl reads much of one before it returns, a slow sink makes that
    /// long, and commands wait.
    func interrupts(_ id: Order.ID) -> Bool {
      guard thread.hasCommands, ContinuousClock.now - now > .milliseconds(20) else { return false }
      interrupted.append(id)
      return true
    }

    private func continueInterrupted() {
      let ids = interrupted
      interrupted = []
      for id in ids {
        guard let transfer = transfers[id] else { continue }
        transfer.goOn()
        collect(transfer)
      }
    }

    private func pushCollected() {
      for (transfer, error) in block.emptyAtEndOfTurn() {
        transfer.end(error)
        collect(transfer)
      }
    }

    // MARK: Times

    /// Wakes a transfer at an instant.
    func setAlarm(_ instant: ContinuousClock.Instant, for id: Order.ID) {
      alarms.insert(Alarm(instant: instant, id: id))
    }

    private func soundAlarms() {
      while let next = alarms.first, next.instant <= now {
        _ = alarms.removeFirst()
        guard let transfer = transfers[next.id] else { continue }
        transfer.goOn()
        collect(transfer)
      }
    }

    /// Ends the transfers whose server is silent for too long.
    private func watchTimes() {
      guard now >= nextWatch else { return }
      nextWatch = now + watchInterval
      for transfer in Array(transfers.values) {
        guard let reason = transfer.exceededLimit(settings, now) else { continue }
        transfer.end(reason)
        collect(transfer)
      }
    }

    private var watchInterval: Duration {
      min(.seconds(1), max(.milliseconds(10), (settings.idleTimeLimit ?? .seconds(4)) / 4))
    }

    /// How long the thread may wait, in milliseconds; libcurl shortens it for its own times.
    private func pollTime(_ idleSince: ContinuousClock.Instant) -> Int32 {
      if transfers.isEmpty, !hasConnections { return 60_000 }
      var until = transfers.isEmpty ? idleSince + Self.idleTime + .milliseconds(1) : nextWatch
      if let alarm = alarms.first { until = min(until, alarm.instant) }
      let left = (until - .now) / .milliseconds(1)
      return Int32(min(max(0, left.rounded(.up)), 60_000))
    }

    // MARK: The multi handle

    private func makeMulti() -> UnsafeMutableRawPointer? {
      guard let new = curl_multi_init() else { return nil }
      // Without descriptors libcurl makes a handle that cannot be woken.
      guard curl_multi_wakeup(new) == CURLM_OK else {
        curl_multi_cleanup(new)
        return nil
      }
      // Idle connections beyond this number are closed, the oldest first. 0 would mean a number of libcurl's.
      downpipe_multi_set_long(new, CURLMOPT_MAXCONNECTS, max(1, settings.idleConnections))
      // While one stream of an HTTP/2 connection is read, libcurl holds up to 32 MiB for each that is paused. With one
      // stream a connection a slow reader stops the server, as with HTTP/1.1.
      downpipe_multi_set_long(new, CURLMOPT_MAX_CONCURRENT_STREAMS, 1)
      multi = new
      thread.setHandle(new)
      return new
    }

    private func closeConnections() {
      thread.forgetHandle()
      if settings.waitsForFarewell { connections.endReading() }
      for handle in handles { handle.destroy() }
      handles = []
      if let multi { curl_multi_cleanup(multi) }
      multi = nil
      hasConnections = false
    }

    /// Without a handle there are no transfers. The next command tries again.
    private func refuse(_ command: CurlThread.Command) {
      if case .start(_, let continuation) = command {
        continuation.resume(throwing: CurlFailure.outOfDescriptors)
      } else {
        perform(command)
      }
    }

    private func end() {
      let reason = DownloadError(.shutDown, "the downloader was shut down")
      for transfer in Array(transfers.values) {
        transfer.end(reason)
        collect(transfer)
      }
      for command in thread.close() {
        switch command {
        case .start(_, let continuation): continuation.resume(throwing: reason)
        case .read(_, let reader): reader.continuation.resume(throwing: reason)
        case .drain(_, let continuation): continuation.resume()
        case .stop(let continuation?): stopping.append(continuation)
        case .discard, .cancel, .stop(nil): break
        }
      }
      closeConnections()
      for continuation in stopping { continuation.resume() }
    }
  }
#endif
