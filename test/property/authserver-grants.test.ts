/** Tests sessions and refresh families under any interleaving: ended grants are invalid, all others stay valid. */
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { makeState } from '../../runtime/authserver/storage/state.ts'
import { Grants } from '../../runtime/authserver/tokens/grants.ts'
import { makeKeyRing } from '../../runtime/authserver/tokens/key-ring.ts'
import { Sessions } from '../../runtime/authserver/tokens/sessions.ts'
import { makeMemoryStore, type Store } from '../../runtime/store/index.ts'
import { sha256, upstreamRowKey } from '../../runtime/authserver/model/identifiers.ts'

const ring = await makeKeyRing({ signingKeys: [], hmacSecrets: [randomBytes(32)] })
const client = { clientId: 'client', authMethod: 'none' } as const
const hour = 3_600_000
const person = { userId: 'alice', authTimeSec: 0 }
const tokens = { provider: 'corp', subject: 'a', accessToken: 'at', obtainedAtMs: 0 }
const login = { user: person, clientId: 'client', obtained: [tokens], endsAtMs: hour }

/** Returns a store whose responses arrive in the order of the scheduler. */
function scheduled(inner: Store, scheduler: fc.Scheduler): Store {
  const later = <A extends unknown[], R>(work: (...args: A) => Promise<R>) => scheduler.scheduleFunction(work)
  return {
    ...inner,
    get: later((key) => inner.get(key)),
    read: later((key) => inner.read(key)),
    set: later((key, value, options) => inner.set(key, value, options)),
    take: later((key) => inner.take(key)),
    delete: later((key) => inner.delete(key)),
    touch: later((key, ttlMs) => inner.touch(key, ttlMs)),
    swap: later((key, seen, next, ttlMs) => inner.swap(key, seen, next, ttlMs)),
    namespace: (prefix) => scheduled(inner.namespace(prefix), scheduler),
  }
}

t.test('sessions: logins and ends in any order leave exactly the grants that did not end', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.record({ end: fc.boolean(), delay: fc.nat(30) }), { minLength: 2, maxLength: 6 }),
      async (scheduler, logins) => {
        const inner = makeMemoryStore()
        const state = makeState(scheduled(inner, scheduler), () => ring.sealSecrets)
        const sessions = new Sessions({ state, now: () => 0 })
        const work = Promise.all(
          logins.map(async ({ end, delay }) => {
            for (let n = 0; n < delay; n++) await scheduler.schedule(Promise.resolve())
            const opened = await sessions.open(login)
            if (end) await sessions.endGrant(opened.sessionId, opened.grantId)
            return { ...opened, end }
          }),
        )
        await scheduler.waitFor(work)
        const plain = makeState(inner, () => ring.sealSecrets)
        const check = new Sessions({ state: plain, now: () => 0 })
        for (const { sessionId, grantId, end } of await work) {
          const live = await check.isLive({
            tsid: sessionId,
            gid: sha256(grantId),
            sub: 'alice',
            client_id: 'https://client',
          })
          const known = await check.isLive({
            tsid: sessionId,
            gid: sha256(grantId),
            sub: 'alice',
            client_id: 'client',
          })
          if (live || known) throw new Error('a client that is not registered counts as alive')
          const session = await plain.sessions.get(sessionId)
          const listed = session?.grants.some((grant) => grant.id === grantId) ?? false
          if (listed === end) throw new Error(end ? 'an ended grant is listed' : 'a living grant is lost')
          const row = await plain.rows.get(upstreamRowKey(sessionId, 'corp'))
          if (!session && row) throw new Error('tokens outlived their session')
          if (session && !row) throw new Error('a living session lost its tokens')
        }
      },
    ),
    { numRuns: 150 },
  )
  t.pass()
})

t.test(
  'refresh: simultaneous uses of one token yield one successor, and reuse revokes all tokens',
  async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.integer({ min: 2, max: 5 }), async (scheduler, parallel) => {
        let nowMs = 0
        const inner = makeMemoryStore()
        const make = (store: Store) => {
          const state = makeState(store, () => ring.sealSecrets)
          const sessions = new Sessions({ state, now: () => nowMs })
          const lives = {
            accessTokenMs: hour,
            refreshTokenMs: 24 * hour,
            refreshGraceMs: 60_000,
            authCodeMs: 600_000,
            grantMs: 720 * hour,
          }
          const grants = new Grants({
            state,
            keys: () => ring,
            sessions,
            now: () => nowMs,
            lives,
            onReuse: () => {},
          })
          return { state, sessions, grants }
        }
        const plain = make(inner)
        const { sessionId, grantId } = await plain.sessions.open(login)
        const grant = {
          grantId,
          sessionId,
          clientId: 'client',
          clientKind: 'dcr' as const,
          userId: 'alice',
          scopes: ['a'],
          resources: ['r'],
          refreshable: true,
          authTimeSec: 0,
        }
        const { createHash } = await import('node:crypto')
        const verifier = 'v'.repeat(43)
        const codeChallenge = createHash('sha256').update(verifier).digest('base64url')
        const code = await plain.grants.issueCode(grant, {
          redirectUri: 'x',
          redirectGiven: true,
          codeChallenge,
        })
        const wanted = { scopes: undefined, resources: [] }
        const first = await plain.grants.redeem(
          code,
          { ...client, redirectUri: 'x', codeVerifier: verifier },
          wanted,
        )
        const token = first.refreshToken ?? ''

        const racing = make(scheduled(inner, scheduler))
        const work = Promise.all(
          Array.from({ length: parallel }, () => racing.grants.refresh(token, client, wanted)),
        )
        await scheduler.waitFor(work)
        const successors = new Set((await work).map((one) => one.refreshToken))
        if (successors.size !== 1) throw new Error(`${successors.size} successors`)
        nowMs += 61_000
        const reuse = await plain.grants.refresh(token, client, wanted).catch(() => undefined)
        const [successor = ''] = successors
        const after = await plain.grants.refresh(successor ?? '', client, wanted).catch(() => undefined)
        if (reuse || after) throw new Error('the family survived reuse')
      }),
      { numRuns: 100 },
    )
    t.pass()
  },
)

t.test(
  'codes: at most one of many simultaneous redemptions succeeds, and a second use revokes its tokens',
  async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.integer({ min: 2, max: 4 }), async (scheduler, parallel) => {
        const inner = makeMemoryStore()
        const state = makeState(scheduled(inner, scheduler), () => ring.sealSecrets)
        const sessions = new Sessions({ state, now: () => 0 })
        const lives = {
          accessTokenMs: hour,
          refreshTokenMs: 24 * hour,
          refreshGraceMs: 60_000,
          authCodeMs: 600_000,
          grantMs: 720 * hour,
        }
        const grants = new Grants({
          state,
          keys: () => ring,
          sessions,
          now: () => 0,
          lives,
          onReuse: () => {},
        })
        const { createHash } = await import('node:crypto')
        const verifier = 'v'.repeat(43)
        const by = { ...client, redirectUri: 'x', codeVerifier: verifier }
        const work = (async () => {
          const { sessionId, grantId } = await sessions.open(login)
          const grant = {
            grantId,
            sessionId,
            clientId: 'client',
            clientKind: 'dcr' as const,
            userId: 'alice',
            scopes: ['a'],
            resources: ['r'],
            refreshable: true,
            authTimeSec: 0,
          }
          const codeChallenge = createHash('sha256').update(verifier).digest('base64url')
          const code = await grants.issueCode(grant, { redirectUri: 'x', redirectGiven: true, codeChallenge })
          const all = await Promise.all(
            Array.from({ length: parallel }, () =>
              grants.redeem(code, by, { scopes: undefined, resources: [] }).catch(() => undefined),
            ),
          )
          const winners = all.filter((one) => one !== undefined)
          if (winners.length > 1) throw new Error('a code counted twice')
          const token = winners[0]?.refreshToken
          const later =
            token === undefined
              ? undefined
              : await grants
                  .refresh(token, client, { scopes: undefined, resources: [] })
                  .catch(() => undefined)
          if (later) throw new Error('tokens of a code that was used twice are alive')
        })()
        await scheduler.waitFor(work)
      }),
      { numRuns: 100 },
    )
    t.pass()
  },
)
