// SPDX-License-Identifier: Apache-2.0
// The stand-alone image.
#include "tools/plot/drawing.h"
#include "tools/plot/style.h"

namespace toto::plot {

std::string to_svg(const Figure& figure) {
  const Drawing drawing = draw(figure);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" +
         svg_element(figure, drawing, style_rules(Scheme::light, drawing.bands));
}

}  // namespace toto::plot
