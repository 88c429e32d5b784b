/** Starts a real OCI registry (CNCF Distribution) on a loopback port, and runs cosign with a test key. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import { freePort } from '../gatehouse.ts'
import { findProgram, programAbsent } from '../kube/assets.ts'
import type { Ran } from '../kube/apiserver.ts'

/** Reason that the registry or cosign cannot run on this machine, for `{ skip }`; otherwise false. */
export function registryMissing(): string | false {
  const absent = (['registry', 'cosign'] as const).find((name) => findProgram(name) === undefined)
  return absent === undefined ? false : programAbsent(absent)
}

/** Starts the registry and stops it with the test, which must be inside its own namespaces. Returns host and port. */
export async function startRegistry(t: Pick<Test, 'teardown'>): Promise<string> {
  // A new network namespace has a loopback interface that is down.
  spawnSync('ip', ['link', 'set', 'lo', 'up'])
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-registry-'))
  const host = `127.0.0.1:${await freePort()}`
  const config = join(folder, 'config.json')
  const settings = {
    version: 0.1,
    log: { level: 'error' },
    storage: { filesystem: { rootdirectory: join(folder, 'data') } },
    http: { addr: host },
  }
  // The registry reads YAML, and JSON is valid YAML.
  writeFileSync(config, JSON.stringify(settings))
  const env = { ...process.env, OTEL_TRACES_EXPORTER: 'none' }
  const child = spawn(findProgram('registry') ?? '', ['serve', config], { stdio: 'ignore', env })
  t.teardown(async () => {
    const ended = once(child, 'exit')
    if (child.exitCode === null && child.kill()) await ended
    rmSync(folder, { recursive: true, force: true })
  })
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const response = await fetch(`http://${host}/v2/`).catch(() => undefined)
    if (response?.ok) return host
    await pause(100)
  }
  throw new Error('the registry did not start')
}

export interface Signer {
  /** Path of the public key. */
  readonly publicKey: string
  /** Runs cosign with these arguments. */
  run(...args: readonly string[]): Ran
  /** Signs with the private key, without a transparency log. Throws when cosign fails. */
  sign(command: 'sign' | 'sign-blob' | 'attest', ...args: readonly string[]): void
  /** Verifies with the public key. */
  verify(command: 'verify' | 'verify-blob' | 'verify-attestation', ...args: readonly string[]): Ran
}

/** Creates a key pair in the folder. */
export function makeSigner(folder: string): Signer {
  const env = { ...process.env, HOME: folder, COSIGN_PASSWORD: 'test', COSIGN_YES: 'true' }
  const run = (...args: readonly string[]): Ran => {
    const { status, stdout, stderr } = spawnSync(findProgram('cosign') ?? '', args, {
      cwd: folder,
      env,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    })
    return { code: status ?? 1, stdout, stderr }
  }
  const must = (ran: Ran): void => {
    if (ran.code !== 0) throw new Error(`cosign: ${ran.stderr}`)
  }
  must(run('generate-key-pair'))
  const publicKey = join(folder, 'cosign.pub')
  // The test has no network, so this configuration contains no transparency log and no timestamp service.
  const services = join(folder, 'signing-config.json')
  must(run('signing-config', 'create', `--out=${services}`))
  const http = (command: string) => (command.endsWith('-blob') ? [] : ['--allow-http-registry'])
  return {
    publicKey,
    run,
    sign(command, ...args) {
      must(run(command, '--key=cosign.key', `--signing-config=${services}`, ...http(command), ...args))
    },
    verify: (command, ...args) =>
      run(command, `--key=${publicKey}`, '--insecure-ignore-tlog=true', ...http(command), ...args),
  }
}
