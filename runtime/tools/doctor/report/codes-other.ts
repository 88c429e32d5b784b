/** Codes for the other targets: a running gateway, manifests, client files, Redis. */
export const otherCodes = {
  'gateway.unreachable': {
    expected: 'a response from /health',
    fix: 'Start the gateway, or correct the address: the port of gatehouse proxy, vmcp serve or dev, without a path.',
  },
  'gateway.other': {
    expected: '/health and /readyz from a Gatehouse server',
    fix: 'Another server is listening at this address: use the address of gatehouse proxy, vmcp serve or dev, without a path.',
  },
  'gateway.not-ready': {
    expected: '/readyz reports ready',
    fix: 'The gateway reports the reason above; its log contains the cause.',
  },
  'gateway.backend': {
    expected: 'every backend is healthy',
    fix: 'Check the backends separately: run gatehouse doctor with each URL, or -f with the manifests; /api/backends/health reports when each state began.',
  },
  'gateway.program': {
    expected: 'the program runs and responds',
    fix: 'Correct the problem that the program’s output describes; gatehouse logs NAME prints the output.',
  },
  'gateway.problem': {
    expected: 'no problems in /status',
    fix: 'Each problem names the affected backend or setting.',
  },
  'manifest.invalid': {
    expected: 'manifests that the admission webhook accepts',
    fix: 'Correct the named fields; gatehouse validate -f reports the same errors.',
  },
  'manifest.warning': {
    expected: 'no warnings',
    fix: 'Read the warning: the manifest is accepted, but part of it has no effect or poses a risk.',
  },
  'client-file.unreadable': {
    expected: 'a file that the client can parse',
    fix: 'Correct the syntax at the reported line; until then, the client ignores the whole file.',
  },
  'client-file.entry': {
    expected: 'an entry that names a URL or a program',
    fix: 'Correct the entry; gatehouse import shows how each entry is interpreted.',
  },
  'client-file.disabled': {
    expected: 'the entry is enabled',
    fix: 'Enable the server in the client.',
  },
  'client-file.variable': {
    expected: 'the entry’s variables are set in the environment in which the client starts',
    fix: 'Set the variable. Desktop programs do not read shell profiles: set it for the login session, or in the client.',
  },
  'client-file.program': {
    expected: 'the program is in PATH',
    fix: 'Install the program, or write its absolute path: desktop programs often have a shorter PATH than a shell.',
  },
  'redis.unreachable': {
    expected: 'a connection to Redis',
    fix: 'Start Redis, correct the host and port, or open the port; rediss:// is for TLS, and redis:// is for plain TCP.',
  },
  'redis.credentials': {
    expected: 'the user name and password are accepted',
    fix: 'Correct the user name (in the URL) and the password (--password-file, the Secret in manifests).',
  },
  'redis.version': {
    expected: 'Redis or Valkey 6.2 or newer',
    fix: 'Upgrade: sessions require commands that Redis 6.2 introduced.',
  },
  'redis.role': {
    expected: 'a primary that accepts writes',
    fix: 'This is a replica: use the address of the primary, or use Sentinel or cluster mode.',
  },
  'redis.policy': {
    expected: 'maxmemory-policy noeviction',
    fix: 'Set maxmemory-policy to noeviction: otherwise Redis drops sessions and logins when its memory is full.',
  },
  'redis.memory': {
    expected: 'less than 90% of maxmemory in use',
    fix: 'Raise maxmemory, or shorten the lifetime of sessions.',
  },
  'redis.clock': {
    expected: 'clocks that differ by less than 5 seconds',
    fix: 'Synchronize the clocks (NTP): the lifetime of sessions and logins depends on the Redis server’s clock.',
  },
  'redis.plain': {
    expected: 'TLS',
    fix: 'Passwords and sessions are sent in plaintext: use rediss:// (tls in manifests), unless the network is trusted.',
  },
} as const
