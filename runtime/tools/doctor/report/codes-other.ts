/** Codes of the other targets: a running gateway, manifests, files of clients, Redis. */
export const otherCodes = {
  'gateway.unreachable': {
    expected: 'a response of /health',
    fix: 'Start the gateway, or correct the address: without a path, the port of gatehouse proxy, vmcp serve or dev.',
  },
  'gateway.other': {
    expected: '/health and /readyz of a Gatehouse server',
    fix: 'Something else listens there: give the address of gatehouse proxy, vmcp serve or dev, without a path.',
  },
  'gateway.not-ready': {
    expected: '/readyz says ready',
    fix: 'The reason above is the gateway’s own; its log has the cause.',
  },
  'gateway.backend': {
    expected: 'every backend is healthy',
    fix: 'Examine the backends by themselves: gatehouse doctor with their URL, or -f with their manifests; /api/backends/health says since when.',
  },
  'gateway.problem': {
    expected: 'no problems in /status',
    fix: 'Each problem names the backend or setting that it is about.',
  },
  'manifest.invalid': {
    expected: 'manifests that the admission webhook accepts',
    fix: 'Correct the fields that are named; gatehouse validate -f shows the same.',
  },
  'manifest.warning': {
    expected: 'no warnings',
    fix: 'Read the warning: the manifest is accepted, and part of it has no effect or a risk.',
  },
  'client-file.unreadable': {
    expected: 'a file that the client can parse',
    fix: 'Correct the syntax at the place that is named; the client ignores the whole file until then.',
  },
  'client-file.entry': {
    expected: 'an entry that names a URL or a program',
    fix: 'Correct the entry; gatehouse import shows how each one is read.',
  },
  'client-file.disabled': {
    expected: 'the entry is enabled',
    fix: 'Enable the server in the client.',
  },
  'client-file.variable': {
    expected: 'the variables of the entry are set where the client starts',
    fix: 'Set the variable. Programs with a window do not read the files of a shell: set it for the login session, or in the client.',
  },
  'client-file.program': {
    expected: 'the program is in PATH',
    fix: 'Install it, or write its absolute path: programs with a window often have a shorter PATH than a shell.',
  },
  'redis.unreachable': {
    expected: 'a connection to Redis',
    fix: 'Start Redis, correct host and port, or open the port; rediss:// is for TLS and redis:// for plain TCP.',
  },
  'redis.credentials': {
    expected: 'the user name and password are accepted',
    fix: 'Correct the user name (in the URL) and the password (--password-file, the Secret in manifests).',
  },
  'redis.version': {
    expected: 'Redis or Valkey 6.2 or newer',
    fix: 'Upgrade: sessions need commands of Redis 6.2.',
  },
  'redis.role': {
    expected: 'a primary that takes writes',
    fix: 'This is a replica: give the address of the primary, or use Sentinel or cluster mode.',
  },
  'redis.policy': {
    expected: 'maxmemory-policy noeviction',
    fix: 'Set maxmemory-policy to noeviction: with another one Redis drops sessions and logins when its memory is full.',
  },
  'redis.memory': {
    expected: 'less than 90 % of maxmemory in use',
    fix: 'Raise maxmemory, or shorten the lives of sessions.',
  },
  'redis.clock': {
    expected: 'clocks that differ by less than 5 seconds',
    fix: 'Synchronise the clocks (NTP): lives of sessions and logins are counted by the clock of Redis.',
  },
  'redis.plain': {
    expected: 'TLS',
    fix: 'Passwords and sessions travel in plaintext: use rediss:// (tls in manifests), unless the network is trusted.',
  },
} as const
