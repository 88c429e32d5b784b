/** Runs the servers in a local session whose ports require tokens, and waits until their states are known. */
import { mkdtempSync, rmSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TokenDigests } from '../../net/index.ts'
import type { Conversion } from '../../toolkit/clients/index.ts'
import { localHooks } from '../../toolkit/local/cluster/cluster.ts'
import { documentsOf } from '../../toolkit/local/conversion.ts'
import { localEnvironment } from '../../toolkit/local/environment.ts'
import { LogFiles } from '../../toolkit/local/processes/log-files.ts'
import {
  type MemberState,
  type SessionState,
  sessionStateOf,
} from '../../toolkit/local/screen/member-states.ts'
import { DevSession } from '../../toolkit/local/session.ts'
import { askMcp } from '../../toolkit/mcp-client/mcp.ts'
import { makePeers } from '../../toolkit/mcp-client/peers.ts'
import { type SkippedTarget, writeSkipped } from '../../toolkit/targets/skipped.ts'
import type { RunningLogin } from './identity/login.ts'
import { printError } from '../../toolkit/terminal/output.ts'
import { runtimeImage } from '../../toolkit/terminal/self.ts'

export interface UpSessionOptions {
  readonly port: number
  /** Digests of the clients' tokens. */
  readonly clients: TokenDigests
  /** Undefined when the address accepts only the clients' tokens. */
  readonly login?: RunningLogin | undefined
  /** Folder for the servers' output. */
  readonly logs: string
  readonly startTimeout: number
  /** Receives each line that a server writes. */
  readonly onLine: (name: string, line: string) => void
}

export interface UpSession {
  readonly session: DevSession
  readonly login: RunningLogin | undefined
  /** Replaces the servers. */
  declare(conversion: Conversion): Promise<void>
  /** Publishes the servers that do not run, so that other commands can report them. */
  publishSkipped(servers: readonly SkippedTarget[]): void
  close(): Promise<void>
}

/** The default timeout of a virtual server. */
const minRequestSeconds = 30

export async function startSession(conversion: Conversion, options: UpSessionOptions): Promise<UpSession> {
  const { hooks } = await localHooks()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-up-'))
  const report = (error: unknown) =>
    printError(`gatehouse up: ${error instanceof Error ? error.message : String(error)}`)
  const logs = new LogFiles(options.logs, report)
  const session = new DevSession({
    hooks,
    port: options.port,
    runtimeImage,
    folder,
    access: {
      token: randomBytes(32).toString('base64url'),
      clients: options.clients,
      members: conversion.members
        .filter(({ kind }) => kind === 'MCPServer')
        .map(({ metadata }) => metadata.name),
      loginPages: options.login?.loginPages,
    },
    ...localEnvironment(),
    startMs: options.startTimeout * 1000,
    onChange: () => {},
    onLine: (workload, parent, line) => {
      logs.write(parent.metadata.name, `[${workload.metadata.name}] ${line}`)
      options.onLine(workload.metadata.name, line)
    },
    onError: report,
  })
  const { login } = options
  // Each new client session starts its own stdio server process, which may take as long to start as the first process.
  const requestTimeout = `${Math.max(options.startTimeout, minRequestSeconds)}s`
  const declare = async (servers: Conversion): Promise<void> => {
    const documents = documentsOf(servers, { requestTimeout })
    await session.declare(login ? login.apply(documents) : documents)
  }
  await declare(conversion)
  return {
    session,
    login,
    declare,
    publishSkipped: (servers) => writeSkipped(folder, servers),
    async close() {
      await session.stop()
      logs.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const stepMs = 200
/**
 * The checks of a running server are allowed to fail for this long, because a server may not be ready for its first
 * session.
 */
const failureMs = 6000

interface SettleOptions {
  /** Time limit in seconds for servers to start. */
  readonly startTimeout: number
  readonly signal: AbortSignal
  /** Called repeatedly with the names of the servers whose state is not known yet. */
  readonly onStarting: (names: readonly string[]) => void
}

/**
 * Resolves when every server is ready, needs a login, or has failed. After the start timeout, servers that are still
 * starting count as failed.
 */
export async function settledState(
  { session }: UpSession,
  names: readonly string[],
  { startTimeout, signal, onStarting }: SettleOptions,
): Promise<SessionState> {
  const startedAt = performance.now()
  const failedSince = new Map<string, number>()
  for (;;) {
    const state = await sessionStateOf(session, names)
    const now = performance.now()
    for (const { name, phase } of state.members) {
      if (phase !== 'failed') failedSince.delete(name)
      else if (!failedSince.has(name)) failedSince.set(name, now)
    }
    const isSettled = (member: MemberState) =>
      member.phase === 'failed' && !member.hasEnded
        ? now - (failedSince.get(member.name) ?? now) > failureMs
        : member.phase !== 'starting'
    const starting = state.members.filter((member) => !isSettled(member))
    if (state.url !== undefined && starting.length === 0) return state
    onStarting(starting.map(({ name }) => name))
    if (signal.aborted || now - startedAt > startTimeout * 1000) return withoutStarting(state, startTimeout)
    await sleep(stepMs, undefined, { signal }).catch(() => undefined)
  }
}

function withoutStarting(state: SessionState, seconds: number): SessionState {
  const members = state.members.map(
    (member): MemberState =>
      member.phase === 'starting'
        ? {
            ...member,
            phase: 'failed',
            why: `does not respond after ${seconds} s`,
            fix: `run gatehouse logs ${member.name} to see its output, or pass a longer --start-timeout`,
          }
        : member,
  )
  return { ...state, members }
}

const maxPages = 100
const listTimeoutMs = 10_000

/** Returns the number of tools at the address, or null when they cannot be listed. */
export async function countTools(url: string, token: string | undefined): Promise<number | null> {
  const target = new URL(url)
  const peers = await makePeers({ target, timeoutMs: listTimeoutMs })
  try {
    let count = 0
    let cursor: unknown
    for (let page = 0; page < maxPages; page++) {
      const params = typeof cursor === 'string' ? { cursor } : {}
      const found = await askMcp(peers, target, { method: 'tools/list', era: 'stateless', params, token })
      const result = 'failure' in found ? undefined : found.result
      if (!result || !Array.isArray(result['tools'])) return null
      count += result['tools'].length
      cursor = result['nextCursor']
      if (typeof cursor !== 'string') return count
    }
    return count
  } finally {
    await peers.close()
  }
}
