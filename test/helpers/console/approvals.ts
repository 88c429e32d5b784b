/** A console for a server whose locks are in files, and the steps from an approval to the lock in use. */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { makeApprover } from '../../../runtime/tools/lock/approval/approver.ts'
import { lockSpec, manifestText } from '../../../runtime/tools/lock/manifest.ts'
import { locksIn } from '../../../runtime/tools/lock/targets.ts'
import { readManifests } from '../../../runtime/toolkit/manifests/read.ts'
import { vmcpEnvironment } from '../../../runtime/config/index.ts'
import { pinScheme, runtimeToolLock } from '../../../schemas/index.ts'
import { until } from '../redis.ts'
import {
  announceAll,
  type Offer,
  type OfferFor,
  type OfferingBackend,
  startOffering,
} from '../vmcp/rug-pull-rig.ts'
import { bareNames, vmcpConfig } from '../vmcp/vmcp.ts'
import { type ConsoleReply, startTestConsole, type TestConsole } from './console.ts'

export const target = {
  kind: 'Backend',
  name: 'files',
  url: 'http://127.0.0.1:1/mcp',
  transport: 'streamable-http',
} as const

/** The lock that `gatehouse lock` would write for an offered tool. */
export function lockText(offer: Offer): string {
  const items = (list: readonly string[] = [], key = 'name') =>
    list.map((json) => ({ key: String(JSON.parse(json)[key]), text: json }))
  const listing = {
    tools: items(offer.tools),
    prompts: items(offer.prompts),
    templates: items(offer.templates, 'uriTemplate'),
    instructions: offer.instructions,
  }
  return manifestText(target, lockSpec(target, listing, undefined))
}

export interface Drifted {
  readonly kind: string
  readonly name: string
  readonly state: string
  readonly digest: string
  readonly approvedDigest?: string
  readonly parts: readonly string[]
}

export interface ApprovalRig {
  readonly console: TestConsole
  readonly backend: OfferingBackend
  readonly folder: string
  /** The file with the lock. */
  readonly file: string
  read(): string
  offer(offer: Offer): Promise<void>
  drift(): Promise<readonly Drifted[]>
  approve(drift: Drifted, change?: object): Promise<ConsoleReply>
  /** Passes the current content of the files to the server. */
  reload(): void
  /** Applies the files, as `gatehouse dev` does automatically. */
  takeUp(): Promise<void>
}

export interface ApprovalOptions {
  /** Name of the file below the folder. Default: `files.lock.yaml`. */
  readonly file?: string
  readonly more?: Readonly<Record<string, unknown>>
  readonly console?: Parameters<typeof startTestConsole>[2]
}

export async function startApprovals(
  t: Test,
  locked: string,
  offered: Offer | OfferFor,
  { file: name = 'files.lock.yaml', more = {}, console: options = {} }: ApprovalOptions = {},
): Promise<ApprovalRig> {
  const folder = mkdtempSync(join(t.testdir(), 'manifests-'))
  const file = join(folder, name)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, locked)
  const backend = await startOffering(t, 'files', offered)
  const settings = () => ({
    aggregation: bareNames('files'),
    pinning: { onChanged: 'freeze', onNew: 'block', onRemoved: 'warn' },
    toolLocks: locksIn(
      readManifests([folder], () => ''),
      () => [],
    ).map((spec) => ({ scheme: pinScheme, ...runtimeToolLock(spec, 'files', 'files') })),
    ...more,
  })
  const locks: { current: () => ReturnType<TestConsole['vmcp']['view']['toolLocks']> } = { current: () => [] }
  const approver = await makeApprover({
    env: { [vmcpEnvironment.consoleManifests]: JSON.stringify([folder]) },
    toolLocks: () => locks.current(),
  })
  const console = await startTestConsole({ files: backend.url }, settings(), { approver, ...options })
  locks.current = () => console.vmcp.view.toolLocks()
  t.teardown(() => console.close())
  const listed = async () => (await console.api('pins?limit=200')).json['items'] as Drifted[]
  /** Includes the details that each item's page shows. */
  const drift = async () =>
    Promise.all(
      (await listed()).map(async (one) => {
        const query = new URLSearchParams({ backend: 'files', kind: one.kind, name: one.name })
        return {
          ...one,
          ...((await console.api(`pins/item?${query.toString()}`)).json as unknown as Drifted),
        }
      }),
    )
  const reload = () => console.vmcp.reload(vmcpConfig({ files: backend.url }, settings()))
  if (typeof offered !== 'function') await until(async () => (await drift()).length > 0)
  return {
    console,
    backend,
    folder,
    file,
    drift,
    reload,
    read: () => readFileSync(file, 'utf8'),
    async offer(offer) {
      const before = JSON.stringify(await drift())
      backend.offer = offer
      announceAll(backend)
      await until(async () => JSON.stringify(await drift()) !== before)
    },
    approve: ({ kind, name, state, digest, approvedDigest }, change = {}) =>
      console.api('pins/approve', {
        method: 'POST',
        body: { backend: 'files', kind, name, state, digest, approvedDigest, ...change },
      }),
    async takeUp() {
      const before = JSON.stringify(await drift())
      reload()
      await until(async () => JSON.stringify(await drift()) !== before)
    },
  }
}
