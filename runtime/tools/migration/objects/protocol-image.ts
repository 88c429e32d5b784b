/**
 * Converts images of the form `npx://package`, `uvx://package` and `go://module`. Returns the package runner's public
 * image, and the command that runs the package in that image.
 */
import { runnerImages } from '../../../toolkit/clients/index.ts'

export interface RunnerImage {
  readonly image: string
  readonly command: readonly string[]
  /** Command that `gatehouse dev` runs on this machine. */
  readonly local: readonly string[]
}

/** This image has no home folder for non-root users. */
const goImage = {
  image: 'docker.io/library/golang:1.25-bookworm',
  command: ['env', 'HOME=/tmp', 'GOCACHE=/tmp/go-build', 'GOPATH=/tmp/go', 'go'],
}

/** Words between the package runner and the package name. */
const verbs: Readonly<Record<string, readonly string[]>> = { npx: ['-y'], uvx: [], go: ['run'] }

/** If set, `builder` replaces the public image. Returns undefined for an ordinary image and for a local folder. */
export function runnerImage(image: string, builder?: string): RunnerImage | undefined {
  const [, scheme = '', name = ''] = /^(npx|uvx|go):\/\/([^\s]+)$/.exec(image) ?? []
  const runner = scheme === 'go' ? goImage : runnerImages[scheme]
  if (!runner || /^(?:\.|\/)/.test(name)) return undefined
  // `go run` requires a version unless the package is in the working folder's module.
  const named = scheme === 'go' && !name.includes('@') ? `${name}@latest` : name
  const words = [...(verbs[scheme] ?? []), named]
  return {
    image: builder ?? runner.image,
    command: [...runner.command, ...words],
    local: [scheme, ...words],
  }
}
