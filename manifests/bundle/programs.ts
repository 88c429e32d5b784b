/** The programs that are built: their entries and what starts them. */
import type { BuildOptions } from 'esbuild'
import { bundleOptions, bundleParts } from './options.ts'

export interface BuiltProgram {
  readonly name: string
  /** Folder of its chunks. */
  readonly folder: string
  /** File name without ending -> source: what the launchers load, worker threads and parts. */
  readonly entries: Readonly<Record<string, string>>
  /** File name of a launcher -> what it loads. */
  readonly launchers: Readonly<Record<string, string>>
  /** Serves the pages of the console, whose packages it names then. */
  readonly servesConsole?: true
}

export const programs: readonly BuiltProgram[] = [
  {
    name: 'gatehouse',
    folder: 'runtime',
    entries: {
      main: 'runtime/cli/main.ts',
      kubectl: 'runtime/tools/cluster/plugin.ts',
      'script-worker': 'runtime/vmcp/features/scripts/worker.ts',
      'workflow-worker': 'runtime/vmcp/features/workflows/evaluation/worker.ts',
      'lock-worker': 'runtime/tools/lock/worker.ts',
      ...bundleParts,
    },
    launchers: { gatehouse: 'main', 'kubectl-gatehouse': 'kubectl' },
    servesConsole: true,
  },
  {
    name: 'gatehouse-hooks',
    folder: 'hooks',
    entries: { main: 'hooks/server/main.ts', 'hooks-worker': 'hooks/server/worker.ts', ...bundleParts },
    launchers: { 'gatehouse-hooks': 'main' },
  },
]

/** How a program is bundled; where to is up to the caller. */
export function programOptions({ entries }: BuiltProgram) {
  return {
    ...bundleOptions,
    entryPoints: { ...entries },
    chunkNames: '[name]-[hash]',
    splitting: true,
    logLevel: 'warning',
  } as const satisfies BuildOptions
}
