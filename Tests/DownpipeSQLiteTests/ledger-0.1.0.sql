-- A ledger of Downpipe 0.1.0, whose two processes were killed at work: the output of `sqlite3 ledger.sqlite .dump`,
-- with the owners renamed. One download has finished, one has failed, one was being transferred, and one waits.
PRAGMA application_id = 1148217712;
BEGIN TRANSACTION;
CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
INSERT INTO grdb_migrations VALUES('1: downloads');
INSERT INTO grdb_migrations VALUES('2: proofs, what is awaited, and head starts');
INSERT INTO grdb_migrations VALUES('3: lanes, and steps by name');
INSERT INTO grdb_migrations VALUES('4: what was added, and whose ranks they are');
INSERT INTO grdb_migrations VALUES('5: steps of a request, hints of its size');
INSERT INTO grdb_migrations VALUES('6: deadlines');
INSERT INTO grdb_migrations VALUES('7: dependencies');
INSERT INTO grdb_migrations VALUES('8: artifacts that are replaced');
INSERT INTO grdb_migrations VALUES('9: kinds of resting downloads');
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
INSERT INTO kind VALUES(1,'127.0.0.1:18081','ypzxxzd4w7xr4xf8','userInitiated',0,'');
INSERT INTO kind VALUES(2,'127.0.0.1:18081','x18q9225vadcwzb5','userInitiated',0,'');
CREATE TABLE opening (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  owner TEXT NOT NULL UNIQUE
);
INSERT INTO opening VALUES(2,'elsewhere/2');
INSERT INTO opening VALUES(3,'elsewhere/3');
CREATE TABLE counter (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counter VALUES('changes',6);
INSERT INTO counter VALUES('generation',4);
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
, added TEXT, paused_together INTEGER, on_disk INTEGER, size_hint INTEGER, step_selection TEXT, name_is_fallback INTEGER, deadline REAL, dependencies TEXT, waits_for TEXT, earlier_artifact TEXT);
INSERT INTO download VALUES(1,'ddbe753f07e72a16',1,1,'finished',X'7fff00066164d268e838000000000000',1795935514978360,NULL,NULL,NULL,1795935514.9783606528,1795935515.0462260246,'http://127.0.0.1:18081/a.bin',NULL,NULL,1,300000,'0-300000',300000,'"v1"',1795341600.0,1795935515.0,'http://127.0.0.1:18081/a.bin','a.bin','video/mp4',1,NULL,'file','a.bin','a.bin',300000,'video/mp4',1795935515.0450770854,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,300000,NULL,'["VerifyChecksum"]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO download VALUES(2,'1471535cfbf078a6',1,1,'failed',X'7fff00066164d268e839000000000000',1795935514978361,NULL,NULL,NULL,1795935514.9783606528,1795935515.0215241908,'http://127.0.0.1:18081/missing.bin',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"attempt":1,"url":"http:\/\/127.0.0.1:18081\/missing.bin","httpStatus":404,"message":"the server answered 404","code":{"rawValue":"httpStatus"},"stage":"HTTPSource"}',NULL,1,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'["VerifyChecksum"]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO download VALUES(3,'e68285ea4d854e63',1,2,'transferring',X'7fff00066164d27dd3f4000000000000',1795935516349428,NULL,2,1795935546.3524494171,1795935516.3494286536,1795935522.4061031341,'http://127.0.0.1:18081/slow.bin',NULL,NULL,1,NULL,'0-9371648',50000000,'"v1"',1795341600.0,1795935516.0,'http://127.0.0.1:18081/slow.bin','slow.bin','video/mp4',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'4390859-4456395:crc32:eaf977f0;8585163-8650699:crc32:eaf977f0;9306112-9371648:crc32:91af6755',NULL,NULL,NULL,NULL,NULL,'[{"value":"a","name":"X-Note"}]','["http:\/\/127.0.0.1:18081\/mirror\/slow.bin"]',NULL,NULL,NULL,NULL,NULL,9371648,NULL,'["VerifyChecksum"]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO download VALUES(4,'ea550b1d619fe378',2,3,'waiting',X'7fff00066164d28dde7b000000000000',1795935517400699,1795939118.4054496288,NULL,NULL,1795935517.4006989002,1795935517.4099154472,'http://127.0.0.1:18081/busy.bin',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"message":"the server answered 503","retryAfter":{"seconds":{"_0":3600}},"httpStatus":503,"code":{"rawValue":"httpStatus"},"stage":"HTTPSource","url":"http:\/\/127.0.0.1:18081\/busy.bin","attempt":1}',NULL,1,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'["VerifyChecksum"]',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE setting (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO setting VALUES('ranking','PriorityQueue 1');
CREATE TABLE dependency (
  needed TEXT NOT NULL,
  generation INTEGER NOT NULL,
  PRIMARY KEY (needed, generation)
) WITHOUT ROWID;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('kind',2);
INSERT INTO sqlite_sequence VALUES('opening',3);
CREATE INDEX kind_content ON kind (host, location, intent, priority, tags);
CREATE INDEX download_held ON download (owner) WHERE owner IS NOT NULL;
CREATE INDEX download_arrival ON download (arrival);
CREATE INDEX download_resting ON download (phase, updated_at)
  WHERE phase = 'paused' OR phase = 'finished' OR phase = 'failed' OR phase = 'cancelled';
CREATE INDEX download_unsettled ON download (generation) WHERE phase = 'finished' AND step_note IS NOT NULL;
CREATE INDEX download_ready ON download (opening, kind, rank, arrival, generation)
  WHERE phase = 'waiting' AND not_before IS NULL AND waits_for IS NULL;
CREATE INDEX download_delayed ON download (not_before)
  WHERE phase = 'waiting' AND not_before IS NOT NULL AND waits_for IS NULL;
CREATE INDEX download_dependent ON download (arrival) WHERE phase = 'waiting' AND waits_for IS NOT NULL;
CREATE INDEX download_kind ON download (phase, kind)
  WHERE phase = 'paused' OR phase = 'finished' OR phase = 'failed' OR phase = 'cancelled';
COMMIT;
