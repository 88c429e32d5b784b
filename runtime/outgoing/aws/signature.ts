/** What is used of the signing library. Loaded with the first request that is signed. */
export { SignatureV4 } from '@smithy/signature-v4'
