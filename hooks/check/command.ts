/**
 * The hooks program's `check` command. `helm test` runs it in a pod to verify the installation.
 *
 *   1. The hooks server is ready behind its Service and presents the certificate from its Secret.
 * 2. The API server calls the webhook: it admits a valid object and rejects an invalid one. Both requests are dry runs.
 *
 * Prints one line per step. Exits with code 1 if a step does not succeed in time.
 */
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { GatehouseError, invalidConfig, parseDuration } from '../../schemas/index.ts'
import type { ApiServer } from '../base/api-server.ts'
import { assertAdmission } from './admission.ts'

interface Flags {
  readonly namespace: string
  readonly service: string
  readonly caFile: string
  readonly timeout: number
  readonly kubeconfig?: string
}

const retryDelayMs = 1000
const requestTimeoutMs = 10_000

/** Adds the command `check` to the hooks program. Calls `report` after each successful step. */
export function addCheckCommand(program: Command, report: (line: string) => void = printLine): void {
  program
    .command('check')
    .description('verify that the hooks server is ready and that the API server calls its webhook')
    .requiredOption('--namespace <name>', 'namespace of the installation')
    .requiredOption('--service <name>', 'Service in front of the hooks server')
    .requiredOption('--ca-file <file>', 'CA certificate of the hooks server, PEM')
    .option('--timeout <duration>', 'time limit for all steps, such as 60s', parseDuration, 60_000)
    .option(
      '--kubeconfig <file>',
      'kubeconfig file (default: the pod’s in-cluster configuration, then the usual locations)',
    )
    .action(async (flags: Flags) => {
      const deadline = Date.now() + flags.timeout
      const url = `https://${flags.service}.${flags.namespace}.svc/readyz`
      await retryUntil(deadline, async () => assertReady(url, await readFile(flags.caFile)))
      report(`${url} reports that the hooks server is ready`)
      const api = await connect(flags.kubeconfig)
      await retryUntil(deadline, () => assertAdmission(api, flags.namespace))
      report('the API server admits a valid object and rejects an invalid one, as the webhook decides')
    })
}

/** Retries `step` until the deadline, then throws its last error. */
async function retryUntil(deadline: number, step: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (Date.now() + retryDelayMs > deadline) throw error
      await pause(retryDelayMs)
    }
  }
}

async function connect(kubeconfig: string | undefined): Promise<ApiServer> {
  const { KubeConfig, apiServer } = await import('../base/api-server.ts')
  const config = new KubeConfig()
  try {
    if (kubeconfig === undefined) config.loadFromDefault()
    else config.loadFromFile(kubeconfig)
  } catch (cause) {
    throw invalidConfig('the Kubernetes configuration cannot be read', cause)
  }
  return apiServer(config)
}

async function assertReady(url: string, ca: Buffer): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  request(url, { ca, signal: AbortSignal.timeout(requestTimeoutMs) }, (response) => {
    text(response).then((body) => {
      resolve(response.statusCode === 200 ? '' : `${response.statusCode}: ${body.slice(0, 200)}`)
    }, reject)
  })
    .once('error', reject)
    .end()
  const failure = await promise.catch((error: unknown) => String(error))
  if (failure !== '') throw new GatehouseError('INTERNAL', { detail: `${url}: ${failure}` })
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`)
}
