import { imageReference } from '../../../schemas/index.ts'
import manifest from '../../../package.json' with { type: 'json' }
/** This build's version, which the bundler inlines from package.json. */
export const version: string = manifest.version

/** The runtime image for this version. */
export const runtimeImage = imageReference('gatehouse', version)
