#if os(Linux) && Postgres
  import Testing

  @testable import FaultyServer

  @Suite struct FleetTrialCountTests {
    private func request(_ worker: Int, _ range: Range<UInt64>, host: String = "h") -> ServedRequest {
      ServedRequest(
        host: host, client: "10.65.\(worker).2:1", path: "/", start: range.lowerBound, finish: range.upperBound,
        end: .sent)
    }

    private func excuse(_ kind: FleetTrialFault.Kind, _ worker: Int, _ range: Range<UInt64>) -> FleetTrialCount.Excuse {
      FleetTrialCount.Excuse(
        kind: kind, address: "10.65.\(worker).2", begin: range.lowerBound, end: range.upperBound)
    }

    @Test func requestsOfOneHostAreCountedWhileTheyOverlap() {
      let requests = [request(1, 0..<10), request(2, 5..<15), request(3, 10..<20), request(1, 6..<8, host: "other")]
      let count = FleetTrialCount(requests, limit: 2, excuses: [])
      #expect(count.most == 2 && count.mostWithExcused == 2 && count.excesses.isEmpty)
    }

    @Test func moreThanTheLimitIsFound() throws {
      let requests = [request(1, 0..<10), request(2, 5..<15), request(3, 8..<20)]
      let count = FleetTrialCount(requests, limit: 2, excuses: [])
      #expect(count.most == 3)
      let excess = try #require(count.excesses.first)
      #expect(excess.begin == 8 && excess.end == 10 && excess.requests.count == 3 && count.excesses.count == 1)
    }

    @Test func aRequestIsLeftOutFromTheFaultOfItsWorkerOn() {
      let requests = [request(1, 0..<100), request(2, 5..<15), request(3, 50..<60), request(2, 50..<60)]
      let count = FleetTrialCount(requests, limit: 2, excuses: [excuse(.pause, 1, 40..<90)])
      #expect(count.most == 2 && count.mostWithExcused == 3 && count.excesses.isEmpty)
      #expect(count.excused == [.pause: 1] && count.longestAfter == [.pause: 10])
      // Before the fault, and that of another worker, it counts.
      #expect(FleetTrialCount(requests, limit: 2, excuses: [excuse(.pause, 1, 55..<90)]).most == 3)
      #expect(FleetTrialCount(requests, limit: 2, excuses: [excuse(.pause, 4, 40..<90)]).most == 3)
    }

    @Test func aRequestAfterTheFaultCounts() {
      let requests = [request(1, 91..<100), request(2, 91..<100), request(3, 91..<100)]
      #expect(FleetTrialCount(requests, limit: 2, excuses: [excuse(.kill, 1, 40..<90)]).most == 3)
    }

    @Test func aLineOfTheLogIsReadBack() {
      let request = request(1, 3..<4)
      #expect(ServedRequest(line: request.line.dropLast()) == request)
    }
  }
#endif
