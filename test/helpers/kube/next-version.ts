/**
 * A later version for tests of upgrades, made from this source tree: 0.2.0 with a new optional field and a renamed one.
 *
 * `spec.config.displayName` of VirtualMCPServer is new, and the hooks write it to the runtime's file.
 * `spec.config.serverName` replaces `spec.config.name`, which still works and causes a warning. Definitions, validators
 * and manifests come from the same generators as ours.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Test } from 'tap'
import { untyped } from '../untyped.ts'

const root = resolve(import.meta.dirname, '../../..')

export interface Version {
  readonly version: string
  readonly manifests: string
  /** `gatehouse` from source. */
  readonly program: string
  /** `gatehouse-hooks` from source. */
  readonly hooksProgram: string
}

function versionIn(folder: string): Version {
  const { version }: { version: string } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return {
    version,
    manifests: join(folder, 'manifests'),
    program: join(folder, 'runtime/cli/main.ts'),
    hooksProgram: join(folder, 'hooks/server/main.ts'),
  }
}

/** The version of this source tree. */
export const thisVersion = versionIn(root)

/** Makes the later version in a temporary folder, which the end of the test removes. */
export function makeNextVersion(t: Pick<Test, 'teardown'>): Version {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-next-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ['schemas', 'hooks', 'runtime', 'manifests', 'docs', 'package.json'])
    cpSync(join(root, name), join(folder, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  edit(folder, 'package.json', (text) =>
    replaceOnce(text, `"version": "${thisVersion.version}"`, '"version": "0.2.0"'),
  )
  edit(folder, 'schemas/common/vmcp-config.json', (text) => {
    const schema = untyped(JSON.parse(text))
    const { properties } = schema.$defs.VirtualMCPConfig
    properties.serverName = { ...properties.name }
    properties.name.description = 'Deprecated: set serverName instead.'
    properties.displayName = { type: 'string', maxLength: 100, description: 'Title of the server.' }
    return JSON.stringify(schema)
  })
  edit(folder, 'hooks/kinds/virtualmcpserver/config/config.ts', (text) =>
    replaceOnce(
      text,
      'name: own.name ?? name,',
      'name: own.serverName ?? own.name ?? name, displayName: own.displayName,',
    ),
  )
  edit(folder, 'hooks/kinds/virtualmcpserver/warnings.ts', (text) =>
    replaceOnce(
      text,
      '  if (config?.telemetry)',
      "  if (config?.name !== undefined) found.push('config.name is deprecated; set config.serverName')\n  if (config?.telemetry)",
    ),
  )
  for (const generator of ['schemas/generate/main.ts', 'manifests/generate/main.ts'])
    execFileSync(process.execPath, [generator], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  return versionIn(folder)
}

function edit(folder: string, path: string, change: (text: string) => string): void {
  writeFileSync(join(folder, path), change(readFileSync(join(folder, path), 'utf8')))
}

function replaceOnce(text: string, from: string, to: string): string {
  if (text.split(from).length !== 2) throw new Error(`expected to find this text once: ${from}`)
  return text.replace(from, () => to)
}
