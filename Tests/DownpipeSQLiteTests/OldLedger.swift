#if SQLite
  /// A ledger of the previous version, whose process was killed during its work: the output of `sqlite3 ledger.sqlite
  /// .dump`, with the owner renamed. One download has finished, one has failed, one was being transferred, and one
  /// waits after a failure.
  enum OldLedger {
    static let dump = """
      PRAGMA application_id = 1148217712;
      BEGIN TRANSACTION;
      CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
      INSERT INTO grdb_migrations VALUES('1: downloads');
      INSERT INTO grdb_migrations VALUES('2: proofs, what is awaited, and head starts');
      INSERT INTO grdb_migrations VALUES('3: lanes, and steps by name');
      CREATE TABLE tag (
        tag TEXT NOT NULL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (tag, generation)
      ) WITHOUT ROWID;
      CREATE TABLE tally (
        phase TEXT PRIMARY KEY,
        count INTEGER NOT NULL
      ) WITHOUT ROWID;
      INSERT INTO tally VALUES('failed',1);
      INSERT INTO tally VALUES('finished',1);
      INSERT INTO tally VALUES('waiting',1);
      CREATE TABLE kind (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        host TEXT NOT NULL,
        location TEXT,
        intent TEXT NOT NULL,
        priority INTEGER NOT NULL,
        tags TEXT NOT NULL
      );
      INSERT INTO kind VALUES(1,'127.0.0.1:18081','9kftckmnsacem2bk','userInitiated',0,'');
      INSERT INTO kind VALUES(2,'127.0.0.1:18082','9kftckmnsacem2bk','userInitiated',0,'');
      CREATE TABLE opening (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        owner TEXT NOT NULL UNIQUE
      );
      INSERT INTO opening VALUES(2,'elsewhere/1');
      CREATE TABLE counter (
        name TEXT PRIMARY KEY,
        value INTEGER NOT NULL
      ) WITHOUT ROWID;
      INSERT INTO counter VALUES('generation',6);
      CREATE TABLE download (
        generation INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        kind INTEGER NOT NULL,
        opening INTEGER NOT NULL,
        phase TEXT NOT NULL,
        rank BLOB NOT NULL,
        arrival INTEGER NOT NULL,
        not_before REAL,
        owner INTEGER,
        lease REAL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        url TEXT NOT NULL,
        directory TEXT,
        file_name TEXT,
        attempts INTEGER,
        bytes_fetched INTEGER,
        ranges TEXT,
        total INTEGER,
        etag TEXT,
        last_modified REAL,
        response_date REAL,
        resource TEXT,
        suggested_name TEXT,
        media_type TEXT,
        is_complete INTEGER,
        steps TEXT,
        artifact_kind TEXT,
        artifact_path TEXT,
        artifact_name TEXT,
        artifact_size INTEGER,
        artifact_media_type TEXT,
        artifact_modified_at REAL,
        error TEXT,
        awaited TEXT,
        consecutive_failures INTEGER,
        repeated_failures INTEGER,
        was_interrupted INTEGER,
        resumed_from INTEGER,
        marks TEXT,
        content_coding TEXT,
        digests TEXT,
        step_note TEXT,
        expected_size INTEGER,
        maximum_size INTEGER,
        headers TEXT,
        mirrors TEXT,
        metadata TEXT,
        expected_digests TEXT,
        head_start TEXT
      );
      INSERT INTO download VALUES(1,'ddbe753f07e72a16',1,1,'finished',X'7fff000660d2cb03f510000000000000',1795\
      308325696784,NULL,NULL,NULL,1795308325.6967844963,1795308325.7136530875,'http://127.0.0.1:18081/a.bin',N\
      ULL,NULL,1,300000,'0-300000',300000,NULL,1795308324.0,1795308325.0,'http://127.0.0.1:18081/a.bin','a.bin\
      ','application/octet-stream',1,NULL,'file','a.bin','a.bin',300000,'application/octet-stream',1795308325.\
      7131648063,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
      INSERT INTO download VALUES(3,'1471535cfbf078a6',1,1,'failed',X'7fff000660d2cb03f512000000000000',179530\
      8325696786,NULL,NULL,NULL,1795308325.6967844963,1795308325.7128319739,'http://127.0.0.1:18081/missing.bi\
      n',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"a\
      ttempt":1,"code":{"rawValue":"httpStatus"},"message":"the server answered 404","stage":"HTTPSource","htt\
      pStatus":404,"url":"http:\\/\\/127.0.0.1:18081\\/missing.bin"}',NULL,1,1,NULL,NULL,NULL,NULL,NULL,NULL,N\
      ULL,NULL,NULL,NULL,NULL,NULL,NULL);
      INSERT INTO download VALUES(4,'48cd3ffaf8599173',2,2,'transferring',X'7fff000660d2cc133f01000000000000',\
      1795308343475969,NULL,2,1795308373.47671175,1795308343.4759697914,1795308346.6408491134,'http://127.0.0.\
      1:18082/slow.bin',NULL,NULL,1,NULL,'0-8388608',50000000,'"v1"',NULL,1795308343.0,'http://127.0.0.1:18082\
      /slow.bin','slow.bin',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'255590\
      4-2621440:sha-256:1f8745f0d2d1387ec1af2211a3cf417b2e9e885e853472649c1d979d0e9370e3;7798784-7864320:sha-2\
      56:1f8745f0d2d1387ec1af2211a3cf417b2e9e885e853472649c1d979d0e9370e3;8323072-8388608:sha-256:1f8745f0d2d1\
      387ec1af2211a3cf417b2e9e885e853472649c1d979d0e9370e3',NULL,NULL,NULL,NULL,NULL,'[{"name":"Accept","value\
      ":"a"}]',NULL,NULL,NULL,NULL);
      INSERT INTO download VALUES(5,'8b38214234f2f041',2,2,'waiting',X'7fff000660d2cc133f02000000000000',17953\
      08343475970,NULL,NULL,NULL,1795308343.4759697914,1795308343.4845647811,'http://127.0.0.1:18082/busy.bin'\
      ,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"url\
      ":"http:\\/\\/127.0.0.1:18082\\/busy.bin","message":"the server answered 503","httpStatus":503,"code":{"\
      rawValue":"httpStatus"},"attempt":1,"stage":"HTTPSource"}',NULL,1,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,N\
      ULL,'[{"name":"Accept","value":"a"}]',NULL,NULL,NULL,NULL);
      DELETE FROM sqlite_sequence;
      INSERT INTO sqlite_sequence VALUES('kind',2);
      INSERT INTO sqlite_sequence VALUES('opening',2);
      CREATE INDEX kind_content ON kind (host, location, intent, priority, tags);
      CREATE INDEX download_ready ON download (opening, kind, rank, arrival, generation)
        WHERE phase = 'waiting' AND not_before IS NULL;
      CREATE INDEX download_delayed ON download (not_before)
        WHERE phase = 'waiting' AND not_before IS NOT NULL;
      CREATE INDEX download_held ON download (owner) WHERE owner IS NOT NULL;
      CREATE INDEX download_arrival ON download (arrival);
      CREATE INDEX download_resting ON download (phase, updated_at)
        WHERE phase = 'paused' OR phase = 'finished' OR phase = 'failed' OR phase = 'cancelled';
      COMMIT;
      """
  }
#endif
