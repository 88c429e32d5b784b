/**
 * The life cycle of the serving certificate, in a cluster of plain objects with resource versions. After every write, a
 * check confirms that every client that trusted the certificate before trusts the current one.
 */
import t from 'tap'
import {
  type Cluster,
  publishAuthority,
  rotateCertificate,
  type TrustTarget,
} from '../../../hooks/certificates/rotate.ts'
import { checkFitness, joinBundle, sameBundle, splitBundle } from '../../../hooks/certificates/inspect.ts'
import { issueCertificate } from '../../../hooks/certificates/issue.ts'
import type { Stored } from '../../../hooks/certificates/plan.ts'

const day = 86_400_000
const names = ['gatehouse-hooks.gatehouse-system.svc']
const empty: Stored = {
  serving: { certificate: '', key: '' },
  next: { certificate: '', key: '' },
  bundle: '',
  since: undefined,
}

class FakeCluster implements Cluster {
  stored = empty
  version = 1
  clock = new Date('2026-01-01T00:00:00Z')
  readonly bundles: Record<string, string> = { webhook: '', controller: '' }
  readonly refuse = new Set<string>()
  readonly log: string[] = []
  /** Called before a Secret is written, to simulate a second run. */
  meanwhile: (() => void) | undefined
  violations = 0
  readonly targets: readonly TrustTarget[] = Object.keys(this.bundles).map((name) => ({
    name,
    read: async () => [this.bundles[name] ?? ''],
    write: async (bundle) => {
      if (this.refuse.has(name)) throw new Error('refused')
      this.bundles[name] = bundle
      this.check()
    },
  }))

  readSecret = async () => ({ stored: this.stored, version: String(this.version) })

  writeSecret = async (version: string, stored: Stored) => {
    this.meanwhile?.()
    this.meanwhile = undefined
    if (version !== String(this.version)) return false
    this.version += 1
    this.stored = stored
    this.check()
    return true
  }

  /** Every client that was ever configured must trust the current certificate. */
  check(): void {
    if (!this.stored.serving.certificate) return
    for (const [name, bundle] of Object.entries(this.bundles)) {
      if (this.refuse.has(name)) continue
      const found = checkFitness(this.stored.serving, bundle, names, this.clock)
      if (!found.fit) this.violations += 1
    }
  }

  async run(options: { force?: boolean; settleMs?: number } = {}): Promise<void> {
    await rotateCertificate(this, {
      names,
      lifetimeMs: 90 * day,
      renewBeforeMs: 30 * day,
      settleMs: options.settleMs ?? 3_600_000,
      force: options.force ?? false,
      now: () => this.clock,
      report: (line) => this.log.push(line.split(':')[0] ?? ''),
    })
  }

  later(ms: number): void {
    this.clock = new Date(this.clock.getTime() + ms)
  }

  authorities(): number {
    return splitBundle(this.stored.bundle).length
  }
}

await t.test('first run: the authority is trusted before its leaf is stored', async (t) => {
  const cluster = new FakeCluster()
  await cluster.run()
  t.strictSame(cluster.log, ['issue', 'trust', 'trust', 'wait'])
  t.ok(checkFitness(cluster.stored.serving, cluster.stored.bundle, names, cluster.clock).fit)
  t.ok(Object.values(cluster.bundles).every((bundle) => sameBundle(bundle, cluster.stored.bundle)))
  t.equal(cluster.violations, 0)
})

await t.test('second run: changes nothing', async (t) => {
  const cluster = new FakeCluster()
  await cluster.run()
  const before = JSON.stringify([cluster.stored, cluster.bundles, cluster.version])
  cluster.later(day)
  await cluster.run()
  t.equal(JSON.stringify([cluster.stored, cluster.bundles, cluster.version]), before)
})

await t.test(
  'rotation: both authorities are trusted first, then the leaf changes, then the old authority is removed',
  async (t) => {
    const cluster = new FakeCluster()
    await cluster.run()
    const first = cluster.stored.serving.certificate
    cluster.later(61 * day)
    await cluster.run()
    t.equal(cluster.stored.serving.certificate, first, 'still the old leaf')
    t.equal(cluster.authorities(), 2)
    t.ok(Object.values(cluster.bundles).every((bundle) => splitBundle(bundle).length === 2))

    cluster.later(day)
    await cluster.run()
    t.not(cluster.stored.serving.certificate, first, 'the new leaf')
    t.equal(cluster.stored.next.key, '', 'its key is stored only once')
    t.equal(cluster.authorities(), 2, 'servers may show the old leaf a little longer')

    cluster.later(day)
    await cluster.run()
    t.equal(cluster.authorities(), 1)
    t.equal(cluster.violations, 0, 'at no write was the served leaf untrusted')
    t.strictSame(
      cluster.log.filter((line) => line !== 'trust'),
      ['issue', 'wait', 'stage', 'wait', 'promote', 'wait', 'retire', 'wait'],
    )
  },
)

await t.test('rotation: a step waits until the previous step has settled', async (t) => {
  const cluster = new FakeCluster()
  await cluster.run()
  await cluster.run({ force: true })
  const staged = cluster.stored
  cluster.later(3_599_000)
  await cluster.run()
  t.equal(cluster.stored, staged, 'no change a second before the hour')
  cluster.later(1000)
  await cluster.run()
  t.equal(cluster.stored.serving.certificate, staged.next.certificate)
})

await t.test('rotation: the leaf does not change while one client cannot be updated', async (t) => {
  const cluster = new FakeCluster()
  await cluster.run()
  const first = cluster.stored.serving.certificate
  cluster.refuse.add('controller')
  await t.rejects(cluster.run({ force: true }), { code: 'INTERNAL' })
  cluster.later(day)
  await t.rejects(cluster.run(), /does not trust/)
  t.equal(cluster.stored.serving.certificate, first)
  cluster.refuse.clear()
  await cluster.run()
  t.not(cluster.stored.serving.certificate, first, 'continues without intervention once the client responds')
  t.equal(cluster.violations, 0)
})

await t.test('force: one run without a settling time completes the rotation', async (t) => {
  const cluster = new FakeCluster()
  await cluster.run()
  const first = cluster.stored.serving.certificate
  await cluster.run({ force: true, settleMs: 0 })
  t.not(cluster.stored.serving.certificate, first)
  t.equal(cluster.authorities(), 1)
  t.equal(cluster.violations, 0)
})

await t.test('expired: a certificate that was not rotated is replaced in one run', async (t) => {
  const cluster = new FakeCluster()
  await cluster.run()
  const first = cluster.stored.serving.certificate
  cluster.later(91 * day)
  await cluster.run()
  t.not(cluster.stored.serving.certificate, first)
  t.ok(checkFitness(cluster.stored.serving, cluster.bundles['webhook'] ?? '', names, cluster.clock).fit)
})

await t.test('expired while staged: the staged certificate is used at once', async (t) => {
  const cluster = new FakeCluster()
  await cluster.run()
  cluster.later(89 * day)
  await cluster.run()
  const staged = cluster.stored.next.certificate
  t.not(staged, '')
  cluster.later(2 * day)
  await cluster.run()
  t.equal(cluster.stored.serving.certificate, staged)
})

await t.test('drift: a client with a deleted bundle is repaired', async (t) => {
  const cluster = new FakeCluster()
  await cluster.run()
  cluster.bundles['webhook'] = ''
  await cluster.run()
  t.ok(sameBundle(cluster.bundles['webhook'] ?? '', cluster.stored.bundle))
})

await t.test('damage: a Secret with the key of another certificate is repaired', async (t) => {
  const cluster = new FakeCluster()
  await cluster.run()
  const other = await issueCertificate({ names, now: cluster.clock, lifetimeMs: day })
  cluster.stored = { ...cluster.stored, serving: { ...cluster.stored.serving, key: other.key } }
  await cluster.run()
  t.ok(checkFitness(cluster.stored.serving, cluster.stored.bundle, names, cluster.clock).fit)
})

await t.test('race: the run that loses adopts the certificate that the other run stored', async (t) => {
  const cluster = new FakeCluster()
  const winner = await issueCertificate({ names, now: cluster.clock, lifetimeMs: 90 * day })
  cluster.meanwhile = () => {
    cluster.version += 1
    cluster.stored = {
      ...empty,
      serving: { certificate: winner.certificate, key: winner.key },
      bundle: joinBundle([winner.ca]),
    }
  }
  await cluster.run()
  t.equal(cluster.stored.serving.certificate, winner.certificate)
  t.ok(Object.values(cluster.bundles).every((bundle) => sameBundle(bundle, winner.ca)))
})

await t.test(
  'publish: a managed authority is added next to the previous one, and at most two remain',
  async (t) => {
    const cluster = new FakeCluster()
    const report = () => {}
    const now = () => cluster.clock
    await t.rejects(publishAuthority(cluster, { now, report }), /no valid ca\.crt/)
    const cas: string[] = []
    for (let count = 0; count < 3; count += 1) {
      const made = await issueCertificate({ names, now: cluster.clock, lifetimeMs: 90 * day })
      cas.push(made.ca)
      cluster.stored = {
        ...empty,
        serving: { certificate: made.certificate, key: made.key },
        bundle: made.ca,
      }
      await publishAuthority(cluster, { now, report })
    }
    t.ok(sameBundle(cluster.bundles['controller'] ?? '', joinBundle(cas.slice(1))), 'the last two')
  },
)
