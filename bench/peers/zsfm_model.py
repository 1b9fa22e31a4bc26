# SPDX-License-Identifier: Apache-2.0
"""zsfm with the weights of a folder of Toto 2.0."""
import os
import shutil


def zsfm_model(folder, made):
    """What zsfm forecasts with. Its converter looks for a folder with the name of the published checkpoint."""
    import zsfm

    named = os.path.join(made, "Datadog__Toto-2.0-2.5B")
    os.makedirs(named)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(os.path.join(folder, name), named)
    output = os.path.join(made, "model.gguf")
    zsfm.convert("toto", output=output, dtype="f32", model_dir=made)
    return zsfm.TotoModel(output, config=os.path.join(folder, "config.json"))
