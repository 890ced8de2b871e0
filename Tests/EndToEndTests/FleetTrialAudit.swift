#if os(Linux) && Postgres
  import DownpipeCore
  import Foundation

  @testable import FaultyServer

  /// What the database itself notes of each lease and each outcome, by a trigger, in the transactions of the workers.
  struct FleetTrialAudit {
    /// A time during which a worker held a download.
    struct Lease: Hashable {
      var worker: String
      /// The process and its opening of the ledger.
      var owner: String
      var begin: UInt64
      /// `nil` if the lease has not ended.
      var end: UInt64?
      /// The phase that the download had afterwards.
      var outcome: String?
    }

    struct Download {
      var url: String
      var host: String
      var phase: String
      /// The path of the artifact, in the folder of the worker that has finished it.
      var path: String
      var attempts: Int
      var isLeased: Bool
      var leases: [Lease] = []
    }

    /// By their ids.
    private(set) var downloads: [String: Download] = [:]
    /// Rows that do not follow the row before.
    private(set) var problems: [String] = []

    /// Makes the trigger, after the tables are there.
    static let preparation = """
      CREATE TABLE public.trial_audit (
        number bigint GENERATED ALWAYS AS IDENTITY, at timestamptz NOT NULL, id text NOT NULL, before text NOT NULL,
        after text NOT NULL, loser text, taker text);
      CREATE FUNCTION public.trial_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.trial_audit (at, id, before, after, loser, taker) VALUES (
          clock_timestamp(), new.id, old.phase, new.phase,
          (SELECT owner FROM downpipe.opening WHERE number = old.owner),
          (SELECT owner FROM downpipe.opening WHERE number = new.owner));
        RETURN NULL;
      END $$;
      CREATE TRIGGER trial AFTER UPDATE ON downpipe.download FOR EACH ROW
        WHEN (old.owner IS DISTINCT FROM new.owner OR old.phase IS DISTINCT FROM new.phase)
        EXECUTE FUNCTION public.trial_note();
      """

    init(_ database: FleetTrialDatabase) async throws {
      let rows = try await database.query(
        """
        SELECT id, url, host, phase, coalesce(artifact_path, ''), attempts, owner IS NOT NULL
        FROM downpipe.download JOIN downpipe.kind ON kind.number = kind
        """)
      for row in rows where row.count == 7 {
        downloads[row[0]] = Download(
          url: row[1], host: row[2], phase: row[3], path: row[4], attempts: Int(row[5]) ?? -1, isLeased: row[6] == "t")
      }
      let notes = try await database.query(
        """
        SELECT id, (extract(epoch FROM at) * 1000000)::bigint, after, coalesce(loser, ''), coalesce(taker, '')
        FROM public.trial_audit ORDER BY number
        """)
      for note in notes where note.count == 5 { apply(note) }
    }

    private mutating func apply(_ note: [String]) {
      let (id, at, after, loser, taker) = (note[0], (UInt64(note[1]) ?? 0) * 1000, note[2], note[3], note[4])
      // A change of phase within a lease.
      guard loser != taker else { return }
      let open = downloads[id]?.leases.last.flatMap { $0.end == nil ? $0 : nil }
      if !loser.isEmpty {
        if open?.owner != loser {
          problems.append("\(id) was taken from \(loser), but \(open?.owner ?? "none") had it")
        }
        if let count = downloads[id]?.leases.count, count > 0 {
          downloads[id]?.leases[count - 1].end = at
          downloads[id]?.leases[count - 1].outcome = taker.isEmpty ? after : "taken"
        }
      } else if let open {
        problems.append("\(id) was leased by \(taker), but \(open.owner) had it")
      }
      guard !taker.isEmpty else { return }
      let worker = taker.split(separator: "/").first.map(String.init) ?? ""
      downloads[id]?.leases.append(Lease(worker: worker, owner: taker, begin: at))
    }

    /// The most leases of one host at once.
    ///
    /// The times are those of the statements, which are before the commits. Leases seem longer by that, and are not counted
    /// as ended before another worker can have counted.
    var mostLeases: Int {
      var steps: [String: [(UInt64, Int)]] = [:]
      for download in downloads.values {
        for lease in download.leases {
          steps[download.host, default: []] += [(lease.begin, 1), (lease.end ?? .max, -1)]
        }
      }
      return steps.values.map { steps in
        var (count, most) = (0, 0)
        for (_, step) in steps.sorted(by: { $0 < $1 }) {
          count += step
          most = max(most, count)
        }
        return most
      }.max() ?? 0
    }
  }
#endif
