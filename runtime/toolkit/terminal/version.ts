import manifest from '../../../package.json' with { type: 'json' }
/** This build's version, which the bundler inlines from package.json. */
export const version: string = manifest.version

/** The runtime image for this version. */
export const runtimeImage = `ghcr.io/gatehouse-dev/gatehouse:${version}`
